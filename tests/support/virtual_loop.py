"""An event loop on a clock of its own: nothing waits, and each time it would have slept is counted."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any


class _Selector(selectors.DefaultSelector):
    """Passes the time that it is asked to wait to ``slept`` instead of waiting."""

    def __init__(self, slept: Callable[[float], None]) -> None:
        super().__init__()
        self._slept = slept

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout:
            self._slept(timeout)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """``wakeups`` counts how often it slept and was woken by a timer."""

    def __init__(self) -> None:
        self.wakeups, self._now = 0, 0.0
        super().__init__(_Selector(self._sleep))

    def time(self) -> float:
        return self._now

    def _sleep(self, seconds: float) -> None:
        self.wakeups += 1
        self._now += seconds


def wakeups(work: Coroutine[Any, Any, object], seconds: float) -> int:
    """How often the work wakes its loop in so many seconds of the loop's clock; then it is cancelled."""
    loop = VirtualLoop()

    async def main() -> None:
        task = asyncio.create_task(work)
        await asyncio.wait({task}, timeout=seconds)
        task.cancel()
        await asyncio.wait({task})

    try:
        loop.run_until_complete(main())
        return loop.wakeups
    finally:
        loop.close()
