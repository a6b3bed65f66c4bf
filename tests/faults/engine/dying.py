"""Ties a process to the one that started it, so that nothing of a world outlives the engine."""

import ctypes
import os
import signal

from deploy.supervisor.die_with_parent import PR_SET_PDEATHSIG

_libc = ctypes.CDLL(None)


def die_with(parent: int) -> None:
    """This process is killed when ``parent`` ends. Call it after a fork; it is cleared when the user changes."""
    _libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:
        os._exit(1)
