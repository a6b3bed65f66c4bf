"""What windows keep gangs from starting, against a judge that looks at every minute and adds up with nothing of the engine."""

import json
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from jobs.core.admission.snapshot import Quota
from jobs.core.admission.window_guard import WindowGuard
from quotas.core.accounts.ledger import Charge, Ledger
from tests.jobs.core.builders import gang
from tests.quotas.core.builders import cpu, quota, tree

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
TOTAL, MINUTES = 20, 400
LEAVES = "abc"


class World:
    """A flat tree of three queues, each with a window or two, and jobs that hold quota."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.mins = {leaf: rng.randint(0, 3) for leaf in LEAVES}
        self.windows = {leaf: [self._window(leaf) for _ in range(rng.randint(0, 2))] for leaf in LEAVES}
        self.jobs = [
            (rng.choice(LEAVES), rng.randint(1, 6), rng.choice([None, rng.randint(1, MINUTES)]))
            for _ in range(rng.randint(0, 4))
        ]

    def _window(self, leaf: str) -> tuple[int, int, int, int]:
        """Begin and end in minutes from now, the min, and the lead."""
        begin = self.rng.randint(-50, MINUTES - 100)
        return begin, begin + self.rng.randint(1, 100), self.rng.randint(self.mins[leaf], 6), self.rng.randint(0, 200)

    def min_at(self, leaf: str, minute: int) -> int:
        open_now = [low for begin, end, low, _ in self.windows[leaf] if begin <= minute < end]
        return open_now[-1] if open_now else self.mins[leaf]

    def may_start(self, leaf: str, size: int, ends: int | None) -> bool:
        """By looking at every minute at which a window begins that the job may live to see."""
        every = [window for windows in self.windows.values() for window in windows]
        for minute in range(1, MINUTES):
            leads = [lead for begin, _, _, lead in every if begin == minute]
            if not leads or (minute >= ends if ends is not None else minute - max(leads) > 0):
                continue
            stay = [(at, amount) for at, amount, until in self.jobs if until is None or until > minute]
            use = {at: sum(amount for other, amount in stay if other == at) for at in LEAVES}
            if use[leaf] + size <= self.min_at(leaf, minute):
                continue
            raised = {at: self.min_at(at, minute) for at in LEAVES if self.min_at(at, minute) > self.mins[at]}
            use[leaf] += size
            if sum(max(use[at], raised.get(at, 0)) for at in LEAVES) > TOTAL:
                return False
        return True

    def guard(self) -> WindowGuard:
        root = tree(TOTAL, *(self._quota(leaf) for leaf in LEAVES))
        charges = {n: Charge(f"root/{leaf}", cpu(amount)) for n, (leaf, amount, _) in enumerate(self.jobs)}
        ends = {n: NOW + timedelta(minutes=until) for n, (*_, until) in enumerate(self.jobs) if until is not None}
        return WindowGuard(Quota(Ledger(root), 1, stated=root), charges, NOW, lambda: ends)

    def _quota(self, leaf: str) -> dict:
        stated = [
            {"from": (NOW + timedelta(minutes=begin)).isoformat(), "to": (NOW + timedelta(minutes=end)).isoformat(),
             "min": {"cpu": low}, "lead": f"{lead}m"}
            for begin, end, low, lead in self.windows[leaf]
        ]  # fmt: skip
        return quota(leaf, self.mins[leaf], TOTAL, attributes={"windows": json.dumps(stated)})


@pytest.mark.parametrize("seed", range(60))
def test_a_gang_starts_exactly_where_every_minute_that_it_may_live_to_see_has_room_for_it(seed):
    rng = Random(seed)
    for _ in range(5):
        world = World(rng)
        guard = world.guard()
        for number in range(4):
            leaf, size, ends = rng.choice(LEAVES), rng.randint(1, 8), rng.choice([None, rng.randint(1, MINUTES)])
            deadline = None if ends is None else NOW + timedelta(minutes=ends)
            asking = gang(
                f"job-{number}", leaf=f"root/{leaf}", total=cpu(size), deadline_at=deadline, job_id=100 + number
            )
            refusal = guard.check(asking)
            assert (refusal is None) is world.may_start(leaf, size, ends), (world.__dict__, leaf, size, ends, refusal)
            if refusal is None:
                guard.placed(asking)
                world.jobs.append((leaf, size, ends))
