"""Steps that tests of watches share."""

import time


def until(holds) -> None:
    deadline = time.monotonic() + 5
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)
