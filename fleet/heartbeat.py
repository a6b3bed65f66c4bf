"""The sign of life that a process gives to its supervisor: it touches a file each time its own main loop turns.

The file is named by the supervisor. Without a name (a process started by hand, or under another supervisor) nothing is
written. It needs neither database nor broker, so one of them being away never looks like a dead process.
"""

import os
from pathlib import Path

FILE = "CONVOY_HEARTBEAT_FILE"
EVERY_S = 1.0


def beat() -> None:
    """Touch the heartbeat file; a home that cannot be written must not stop the process that works."""
    if name := os.environ.get(FILE):
        try:
            Path(name).touch(mode=0o600)
        except OSError:
            return
