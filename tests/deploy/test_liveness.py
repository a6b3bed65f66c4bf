"""When a process counts as wedged: by its own silence and the work it did, never by the clock alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.supervisor.liveness import SPINNING_S, STALLED_S, Effort, Liveness

LOOK_S = 15.0


def after(seconds: float, step_s: float = 5.0) -> Liveness:
    """A process that has been silent for so long, looked at every few seconds."""
    liveness = Liveness()
    for _ in range(int(seconds / step_s)):
        liveness = liveness.silent(step_s, LOOK_S)
    return liveness


def test_a_silent_idle_process_is_stalled() -> None:
    assert "neither" in after(STALLED_S + 5).fault(Effort(cpu_s=1.0))


def test_a_silent_process_that_works_is_slow() -> None:
    assert not after(600).fault(Effort(cpu_s=100.0))


def test_a_process_that_gets_no_processor_is_slow() -> None:
    assert not after(600).fault(Effort(cpu_s=2.0, delay_s=500.0))


def test_helper_threads_do_not_hide_a_stall() -> None:
    assert after(600).fault(Effort(cpu_s=12.0))


def test_a_silent_process_that_burns_processor_time_is_in_an_endless_loop() -> None:
    assert "processor time" in after(30).fault(Effort(cpu_s=SPINNING_S))


def test_a_frozen_machine_stalls_no_process() -> None:
    assert not Liveness().silent(3600.0, LOOK_S).fault(Effort())


@given(before=st.floats(0, 1e6), silent_s=st.floats(0, STALLED_S - 1))
def test_a_sign_of_life_starts_afresh(before: float, silent_s: float) -> None:
    liveness = after(600).heard(Effort(cpu_s=before))
    assert not liveness.silent(silent_s, STALLED_S).fault(Effort(cpu_s=before))


@pytest.mark.parametrize("cpu_s", [0.0, 50.0])
def test_what_was_used_before_the_silence_does_not_count(cpu_s: float) -> None:
    liveness = Liveness().heard(Effort(cpu_s=cpu_s))
    for _ in range(100):
        liveness = liveness.silent(5.0, LOOK_S)
    assert liveness.fault(Effort(cpu_s=cpu_s))
