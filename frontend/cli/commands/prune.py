"""``convoy prune``: deletes old jobs that have ended."""

from typing import Annotated

import typer

from frontend.cli import session
from frontend.cli.arena import jobs
from frontend.cli.commands.get import Everywhere
from frontend.cli.session import DEFAULT_NAMESPACE


def prune(
    context: typer.Context,
    since: Annotated[str, typer.Option("-s", "--since", help="Older than this, such as 10h.")],
    namespace: session.Namespace = DEFAULT_NAMESPACE,
    everywhere: Everywhere = False,
) -> None:
    """Delete jobs that have ended and were created longer ago than --since. Jobs that wait or are suspended stay."""
    jobs.prune(session.session_of(context), "" if everywhere else namespace, since)
