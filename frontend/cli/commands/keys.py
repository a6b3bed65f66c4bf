"""``convoy rotate-keys``: encrypts the stored secrets again with the first key, batch by batch."""

import typer

from frontend.cli import session


def rotate(context: typer.Context) -> None:
    """Encrypt all stored secrets with the server's first key. The command can be interrupted and repeated at any time."""
    run = session.session_of(context)
    checked = encrypted = 0
    begin = ""
    while True:
        batch = run.api.post("keys/rotation/", {"begin": begin})
        checked, encrypted = checked + batch["looked_at"], encrypted + batch["encrypted"]
        begin = batch["next"]
        if not begin:
            break
        run.screen.note(f"{checked} secrets checked, {encrypted} encrypted again")
    run.screen.line(f"{checked} secrets are encrypted with the first key; {encrypted} were encrypted again")
    run.screen.note(
        "older keys are still needed for signatures of running jobs and for the audit log: see Keys in the operations manual"
    )
