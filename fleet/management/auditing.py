"""Tells the audit who runs a command on the machine itself: the user of the system, since no other is known there."""

import getpass
import socket
from contextlib import AbstractContextManager

from fleet.changes.audit_context import Asking
from fleet.services.auditing import audit


def asking(command: str) -> AbstractContextManager[Asking]:
    """What is announced inside is that user's doing."""
    return audit.asking(_user, door="command", address=socket.gethostname(), request=f"manage.py {command}")


def _user() -> str:
    try:
        return f"system:{getpass.getuser()}"
    except (KeyError, OSError):
        return "system"  # a container may run under a number without a name
