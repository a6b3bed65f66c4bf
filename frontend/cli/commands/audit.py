"""``convoy audit ...``: the audit as lines of JSON, and whether its chain is whole; for fleet admins."""

import json
from typing import Annotated

import typer

from frontend.cli import session
from frontend.cli.problems import Problem

app = typer.Typer(no_args_is_help=True, help="The audit: export, verify.")
After = Annotated[int, typer.Option("--after", help="Only lines behind this place in the chain (seq).")]


@app.command()
def export(context: typer.Context, after: After = 0) -> None:
    """Print the lines of the audit's chain as JSON, oldest first."""
    run = session.session_of(context)
    while True:
        with run.api.stream("audit/export/", {"after": after}) as chunks:
            lines = b"".join(chunks).decode().splitlines()
        if not lines:
            return
        for line in lines:
            run.screen.line(line)
        after = json.loads(lines[-1])["seq"]


@app.command()
def verify(context: typer.Context) -> None:
    """Compare every line with the chain; fails when one was changed, removed or put in."""
    run = session.session_of(context)
    result = run.api.get("audit/verification/")
    if result["fault"]:
        raise Problem(f"the audit was tampered with: {result['fault']}", hint="compare it with an export or a sink")
    run.screen.line(f"the audit is whole: {result['lines']} lines, the last is {result['last']}")
