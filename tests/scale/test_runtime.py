"""What the runtime costs a training in each step: it is called after every one of them."""

import timeit

import pytest

from convoy_runtime import reporting, stopping

pytestmark = pytest.mark.bench
TIMES = 200_000


def test_asking_whether_to_stop_takes_less_than_a_microsecond(capsys: pytest.CaptureFixture[str]) -> None:
    asked = min(timeit.repeat(stopping.stop_requested, number=TIMES, repeat=5)) / TIMES
    reported = min(timeit.repeat(lambda: reporting.report(1, 0.5, 10), number=TIMES // 10, repeat=5)) / (TIMES // 10)
    with capsys.disabled():
        print(f"\nstop_requested {asked * 1e9:.0f} ns, report {reported * 1e6:.2f} us")
    assert asked <= 1e-6
