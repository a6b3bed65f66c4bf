"""Installs what hears and what watches; once in a process."""

from __future__ import annotations

import threading

from convoy_runtime import stopping, watching

_lock = threading.Lock()
_started = False


def start(*, listen: bool = True, watch: bool = True, least_silence_s: float = watching.LEAST_SILENCE_S) -> None:
    """Hears SIGTERM and, with ``listen``, the supervisor's notice on port 9009; with ``watch``, shows stacks when it hangs.

    It hangs when no `report` has come for ``least_silence_s``, or for ten times the usual time of a step if that is longer.
    """
    global _started
    with _lock:
        if _started:
            return
        _started = True
    stopping.on_sigterm()
    if listen:
        stopping.listen()
    if watch:
        watching.watch(least_silence_s)
