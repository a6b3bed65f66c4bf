"""The ``convoy`` command: its verbs and its exit codes. It talks to the server over HTTP only.

Exit codes are stable: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 conflict, 5 took too long.
"""

import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from frontend.cli.commands import (
    agent,
    alias,
    apply,
    audit,
    clusters,
    completion,
    describe,
    explain,
    get,
    jobs,
    keys,
    kubeconfig,
    labels,
    login,
    namespaces,
    notices,
    prune,
    queue,
    runtime,
    simulate,
    sizes,
    tokens,
    users,
    whatif,
)
from frontend.cli.output import screen
from frontend.cli.problems import Exit, Problem
from frontend.cli.session import Session
from frontend.cli.submit import command as submission

HELP = """Run AI training jobs over a fleet of Kubernetes clusters.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 conflict, 5 took too long.
"""

app = typer.Typer(
    name="convoy",
    help=HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def options(
    context: typer.Context,
    server: Annotated[
        str, typer.Option(metavar="URL", help="The server. Default: CONVOY_URL, else what `convoy config` shows.")
    ] = "",
    token: Annotated[str, typer.Option(metavar="TOKEN", help="The bearer token. Default: CONVOY_TOKEN.")] = "",
) -> None:
    context.obj = Session(server, token)


app.command("apply")(apply.apply)
app.add_typer(submission.app, name="submit")
app.command("get")(get.get)
app.command("list")(get.listing)
app.command("describe")(describe.describe)
app.add_typer(runtime.ckpt, name="ckpt")
app.command("ranks")(runtime.ranks)
app.command("stacks")(runtime.stacks)
app.command("goodput")(runtime.goodput)
app.command("explain")(explain.explain)
app.command("notices")(notices.notices)
app.command("whatif")(whatif.whatif)
app.command("simulate")(simulate.simulate)
app.command("logs")(jobs.logs)
app.command("wait")(jobs.wait)
app.command("suspend")(jobs.suspend)
app.command("resume")(jobs.resume)
app.command("scalein")(sizes.scalein)
app.command("scaleout")(sizes.scaleout)
app.command("delete")(apply.delete)
app.command("label")(labels.label)
app.command("prune")(prune.prune)
app.command("top")(clusters.top)
app.add_typer(clusters.app, name="cluster")
app.add_typer(queue.app, name="queue")
app.add_typer(users.app, name="user")
app.add_typer(namespaces.app, name="namespace")
app.add_typer(tokens.app, name="token")
app.add_typer(audit.app, name="audit")
app.command("rotate-keys")(keys.rotate)
app.command("login")(login.login)
app.command("kubeconfig")(kubeconfig.kubeconfig)
app.command("credential")(kubeconfig.credential)
app.command("config")(login.show_config)
app.command("alias")(alias.alias)
app.command("completion")(completion.completion)
app.command("agent", context_settings=agent.PASSED_ON)(agent.agent)


def main() -> None:
    run_and_exit(lambda: app(prog_name="convoy"))


def run_and_exit(run: Callable[[], object]) -> None:
    """Runs a command, and turns its expected failures into messages and exit codes instead of tracebacks."""
    try:
        run()
    except Problem as problem:
        screen().problem(problem)
        sys.exit(problem.exit_code)
    except KeyboardInterrupt:
        sys.exit(Exit.INTERRUPTED)
    except BrokenPipeError:
        _discard_stdout()
        sys.exit(Exit.ERROR)
    except SystemExit:
        _flush()
        raise


def _flush() -> None:
    """Flushes stdout. The reader of a pipe may close it before the last bytes are written."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_stdout()


def _discard_stdout() -> None:
    """Points stdout at /dev/null after a broken pipe, so that the interpreter's own flush at exit does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
