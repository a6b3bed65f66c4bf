"""``convoy audit ...``: exports the audit log as lines of JSON, and verifies its hash chain. For fleet admins."""

import json
from typing import Annotated

import typer

from frontend.cli import session
from frontend.cli.problems import Problem

app = typer.Typer(no_args_is_help=True, help="The audit log: export, verify.")
After = Annotated[int, typer.Option("--after", help="Only lines after this sequence number (seq).")]


@app.command()
def export(context: typer.Context, after: After = 0) -> None:
    """Print the audit log as lines of JSON, oldest first."""
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
    """Verify the hash chain of the audit log. Fails if a line was changed, removed or inserted."""
    run = session.session_of(context)
    result = run.api.get("audit/verification/")
    if result["fault"]:
        raise Problem(f"the audit log was tampered with: {result['fault']}", hint="compare it with an export or a sink")
    run.screen.line(f"the audit log is intact: {result['lines']} lines, the last is {result['last']}")
