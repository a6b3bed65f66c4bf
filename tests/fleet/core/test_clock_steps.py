"""However often a clock steps, no duration counts as longer than it was; one that began before a wrong hour counts exactly."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from fleet.core.clock_steps import STEP, Step, elapsed, folded, spans

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


class Clock:
    """Shows a time that is wrong by its steps; each is noticed up to half a minute later."""

    def __init__(self, dice: random.Random) -> None:
        self._dice, self.real, self._off = dice, BEGAN, timedelta()
        self.steps: list[Step] = []

    @property
    def shows(self) -> datetime:
        return self.real + self._off

    def goes_on(self, minutes: float) -> None:
        self.real += minutes * MINUTE

    def steps_by(self, by: timedelta) -> None:
        looked = self.shows
        self.real += timedelta(seconds=self._dice.random() * 15)
        self._off += by
        self.real += timedelta(seconds=self._dice.random() * 15)
        self.steps.append(Step(before=self.shows - by, after=looked + by, by=by))

    def forgets(self, kept: int) -> None:
        while len(self.steps) > kept:
            self.steps[:2] = [folded(*self.steps[:2])]


@pytest.mark.parametrize("kept", [60, 3])
@pytest.mark.parametrize("seed", range(40))
def test_no_duration_counts_as_longer_than_it_was(seed, kept):
    dice = random.Random(seed)
    clock, written = Clock(dice), []
    for _ in range(60):
        clock.goes_on(dice.uniform(1, 40))
        written.append((clock.shows, clock.real))
        if dice.random() < 0.15:
            clock.steps_by(dice.choice((-1, 1)) * dice.choice((5, 60, 24 * 60)) * MINUTE)
            clock.forgets(kept)
        known = spans(clock.steps, clock.shows)
        for shown, real in written:
            assert elapsed(known, shown, clock.shows) <= clock.real - real + timedelta(seconds=1)
            assert sum(shown in span for span in known) == 1
    if len(clock.steps) < kept and all(step.by > timedelta() for step in clock.steps):
        assert all(elapsed(known, shown, clock.shows) == clock.real - real for shown, real in written)


def test_an_hour_that_was_there_for_ten_minutes_is_forgotten_by_what_began_before_and_after():
    clock = Clock(random.Random(1))
    before = clock.shows
    clock.goes_on(30)
    clock.steps_by(60 * MINUTE)
    ahead, began_ahead = clock.shows, clock.real
    clock.goes_on(10)
    clock.steps_by(-60 * MINUTE)
    after, began_after = clock.shows, clock.real
    clock.goes_on(5)
    known = spans(clock.steps, clock.shows)
    assert elapsed(known, before, clock.shows) == clock.real - BEGAN
    assert elapsed(known, ahead, clock.shows) == clock.real - began_ahead - 60 * MINUTE, "an hour late"
    assert elapsed(known, after, clock.shows) == clock.real - began_after


def test_a_step_back_without_its_step_forward_does_not_count():
    clock = Clock(random.Random(1))
    before = clock.shows
    clock.goes_on(30)
    clock._off += 60 * MINUTE
    clock.goes_on(10)
    clock.steps_by(-60 * MINUTE)
    clock.goes_on(5)
    assert elapsed(spans(clock.steps, clock.shows), before, clock.shows) == clock.real - BEGAN


def test_of_a_clock_that_steps_to_and_fro_forever_the_last_steps_suffice():
    clock = Clock(random.Random(1))
    before = clock.shows
    for by in (60, -60) * 10:
        clock.goes_on(2)
        clock.steps_by(by * MINUTE)
        clock.forgets(3)
        late = clock.real - BEGAN - elapsed(spans(clock.steps, clock.shows), before, clock.shows)
        assert timedelta() <= late <= 60 * MINUTE
    assert not late


def test_without_steps_it_is_the_difference():
    known = spans([], BEGAN)
    assert elapsed(known, BEGAN - STEP, BEGAN) == STEP and len(known) == 1
