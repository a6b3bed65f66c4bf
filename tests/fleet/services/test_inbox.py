"""What an inbox says of how far it is written, whatever a writer does while it is asked."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

from fleet.kube.resources import PYTORCH_JOBS
from fleet.member.watching import Changed, Item
from fleet.services.watching.inbox import Inbox


class Hooked(threading.Event):
    """After its first look, and before anybody knows the answer, something else happens."""

    def __init__(self, deed) -> None:
        super().__init__()
        self._deed = deed

    def is_set(self) -> bool:
        answer, deed = super().is_set(), self._deed
        self._deed = lambda: None
        deed()
        return answer


def test_it_does_not_call_written_what_a_writer_takes_while_it_is_asked():
    begun, goes_on = threading.Event(), threading.Event()

    def write(batches) -> None:
        begun.set()
        assert goes_on.wait(60)

    async def asked() -> tuple[float, float]:
        loop = asyncio.get_running_loop()

        def hand_over() -> None:
            loop.call_soon_threadsafe(inbox._hand_over)
            assert begun.wait(60)

        with ThreadPoolExecutor(1) as writers:
            inbox = Inbox(loop, writers, write)
            await inbox.put(Changed(PYTORCH_JOBS, Item(("team", "a"), {"metadata": {}}), gone=False))
            inbox._timer.cancel()
            inbox._idle = Hooked(hand_over)
            inbox._idle.set()
            delivered = inbox._waiting[0][0]
            try:
                return delivered, await asyncio.to_thread(lambda: inbox.written_until)
            finally:
                goes_on.set()

    delivered, written_until = asyncio.run(asked())
    assert written_until < delivered
