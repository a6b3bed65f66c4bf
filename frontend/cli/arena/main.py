"""The program ``arena``: arena's verbs over the fleet. `convoy alias arena` installs it.

It adds nothing to ``convoy``: each verb is one of convoy's, with arena's flags and arena's tables.
"""

from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from frontend.cli import session
from frontend.cli.arena import jobs, reading
from frontend.cli.arena.jobs import Form
from frontend.cli.commands import jobs as commands
from frontend.cli.commands import nodes, sizes
from frontend.cli.commands.get import Everywhere
from frontend.cli.main import run_and_exit
from frontend.cli.problems import usage
from frontend.cli.session import DEFAULT_NAMESPACE, Session
from frontend.cli.submit import command as submission

HELP = """Run AI training jobs over a fleet of Kubernetes clusters, with the command lines of arena.

It signs in as `convoy` does: `convoy login URL`, or CONVOY_URL and CONVOY_TOKEN.
"""


How = Annotated[Form | None, typer.Option("-o", "--output", help="The output format. Default: a table.")]
Name = Annotated[str, typer.Argument(metavar="JOB", help="The name of the job.")]

_LOG_FLAGS = ("--since", "--since-time", "--timestamps", "--container", "-c")

app = typer.Typer(
    name="arena",
    help=HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
top = typer.Typer(no_args_is_help=True, help="The GPUs of nodes and of jobs.")


class Logs(TyperCommand):
    """Refuses what the fleet's logs cannot do: no value of these flags is ignored."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for arg in args:
            if (flag := arg.partition("=")[0]) in _LOG_FLAGS:
                raise usage(
                    f"{flag} is not supported", f"for example: kubectl logs {flag} ..., against the fleet's API"
                )
        return list(super().parse_args(ctx, args))


@app.callback()
def options(context: typer.Context) -> None:
    context.obj = Session()


@app.command("list")
@app.command("ls", hidden=True)
def listing(
    context: typer.Context,
    namespace: session.Namespace = DEFAULT_NAMESPACE,
    everywhere: Everywhere = False,
    word: session.Type = "",
    output: How = None,
) -> None:
    """List the training jobs."""
    jobs.print_list(session.session_of(context), "" if everywhere else namespace, word, output)


@app.command()
def get(
    context: typer.Context,
    name: Name,
    namespace: session.Namespace = DEFAULT_NAMESPACE,
    word: session.Type = "",
    output: How = None,
    events: Annotated[bool, typer.Option("-e", "--events", help="Show the events of the job.")] = False,
    devices: Annotated[bool, typer.Option("-g", "--gpus", help="Show the GPUs of its pods.")] = False,
) -> None:
    """Show a training job and its instances."""
    run = session.session_of(context)
    jobs.print_job(run, reading.one(run.api, name, namespace, word), output, events=events, devices=devices)


@app.command(cls=Logs)
@app.command("log", cls=Logs, hidden=True)
def logs(
    context: typer.Context,
    name: Name,
    namespace: session.Namespace = DEFAULT_NAMESPACE,
    word: session.Type = "",
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Follow the log until the pod ends.")] = False,
    instance: Annotated[str, typer.Option("-i", "--instance", help="The pod. Default: the chief.")] = "",
    tail: Annotated[int, typer.Option("-t", "--tail", min=-1, help="Only so many lines from the end. -1: all.")] = -1,
) -> None:
    """Print the log of a job's chief, or of another instance."""
    run = session.session_of(context)
    item = session.job(run.api, name, namespace, reading.kind_of(word))
    commands.print_log(run, item, {"pod": instance, "tail": None if tail < 0 else tail}, follow=follow)


@app.command()
@app.command("del", hidden=True)
def delete(
    context: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="JOB...", help="The names of the jobs.")],
    namespace: session.Namespace = DEFAULT_NAMESPACE,
    word: session.Type = "",
) -> None:
    """Delete training jobs."""
    jobs.delete(session.session_of(context), names, namespace, word)


@app.command()
def prune(
    context: typer.Context,
    since: Annotated[str, typer.Option("-s", "--since", help="Older than this, such as 10h.")],
    namespace: session.Namespace = DEFAULT_NAMESPACE,
    everywhere: Everywhere = False,
) -> None:
    """Delete old jobs that have ended. Jobs that wait or are suspended stay."""
    jobs.prune(session.session_of(context), "" if everywhere else namespace, since)


app.command("scalein")(sizes.scalein)
app.command("scaleout")(sizes.scaleout)


@top.command("node")
@top.command("nodes", hidden=True)
def top_node(
    context: typer.Context,
    names: Annotated[list[str] | None, typer.Argument(metavar="[NODE...]", help="Default: all nodes.")] = None,
    cluster: Annotated[str, typer.Option(help="The cluster of the nodes.")] = "",
    details: Annotated[bool, typer.Option("-d", "--details", help="Show the GPUs of each node.")] = False,
) -> None:
    """Show the GPUs of nodes."""
    nodes.top(session.session_of(context), names or [], cluster, details=details)


@top.command("job")
@top.command("jobs", hidden=True)
def top_job(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="[JOB]", help="Default: all jobs.")] = "",
    namespace: session.Namespace = DEFAULT_NAMESPACE,
    everywhere: Everywhere = False,
    word: session.Type = "",
) -> None:
    """Show the GPUs of jobs."""
    run = session.session_of(context)
    if name:
        jobs.print_top_of(run, reading.one(run.api, name, namespace, word))
    else:
        jobs.print_top(run, "" if everywhere else namespace, word)


app.add_typer(submission.app, name="submit")
app.add_typer(top, name="top")


def main() -> None:
    run_and_exit(lambda: app(prog_name="arena"))


if __name__ == "__main__":
    main()
