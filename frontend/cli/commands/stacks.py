"""``convoy stacks``: where the ranks of a job are, by the stacks in the logs of its pods."""

from typing import Annotated

import typer

from frontend.cli import session
from frontend.cli.client import Item
from frontend.cli.commands.jobs import Words, job_of
from frontend.cli.problems import usage
from frontend.cli.session import DEFAULT_NAMESPACE, Session


def stacks(
    context: typer.Context,
    words: Words,
    namespace: session.Namespace = DEFAULT_NAMESPACE,
    output: Annotated[str, typer.Option("-o", "--output", help="text, json or yaml.")] = "text",
) -> None:
    """Merge the stacks of a job's ranks: function@file:line@ranks|others, callers first."""
    run = session.session_of(context)
    if output not in ("text", "json", "yaml"):
        raise usage(f"there is no output {output!r}", "one of: text, json, yaml")
    answer: Item = run.api.get(session.job_path(job_of(run, words, namespace), "stacks"))
    if output == "json":
        return run.screen.json(answer)
    if output == "yaml":
        return run.screen.yaml(answer)
    return _show(run, answer)


def _show(run: Session, answer: Item) -> None:
    for warning in answer["warnings"]:
        run.screen.note(warning)
    for line in answer["lines"]:
        run.screen.line(f"{'  ' * line['depth']}{line['text']}")
    if without := answer["pods_without"]:
        run.screen.note(f"no stacks in the logs of {', '.join(without[:5])}" + _more(len(without) - 5))
    if not answer["lines"]:
        run.screen.note(
            "send SIGUSR1 to processes that called faulthandler.register, or run `py-spy dump` into the log"
        )
    if answer["suspects"]:
        run.screen.note(f"rank {answer['suspects']} is not where most of the others wait", style="yellow")


def _more(count: int) -> str:
    return f" and {count} more" if count > 0 else ""
