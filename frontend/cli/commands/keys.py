"""``convoy rotate-keys``: secrets at rest encrypted again with the first key, batch by batch."""

import typer

from frontend.cli import session


def rotate(context: typer.Context) -> None:
    """Encrypt all secrets at rest with the server's first key. It may be stopped and started again at any time."""
    run = session.session_of(context)
    looked_at = encrypted = 0
    begin = ""
    while True:
        batch = run.api.post("keys/rotation/", {"begin": begin})
        looked_at, encrypted = looked_at + batch["looked_at"], encrypted + batch["encrypted"]
        begin = batch["next"]
        if not begin:
            break
        run.screen.note(f"{looked_at} secrets looked at, {encrypted} encrypted again")
    run.screen.line(f"{looked_at} secrets are of the first key; {encrypted} were encrypted again")
    run.screen.note(
        "older keys are still needed for marks of running jobs and for the audit's chain: see Keys in the operations manual"
    )
