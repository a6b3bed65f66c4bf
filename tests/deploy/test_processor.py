"""How much a busy machine slows a test down is known from what its own threads waited for a processor."""

import time

from tests.support.processor import Waiting


def test_a_thread_that_never_rests_is_as_slow_as_its_share_of_a_processor_is_small() -> None:
    waiting, wall, cpu = Waiting(), time.monotonic(), time.thread_time()
    while time.thread_time() - cpu < 0.3:
        pass
    share = (time.thread_time() - cpu) / (time.monotonic() - wall)
    assert 0.8 < waiting.slowdown() * share < 1.25
