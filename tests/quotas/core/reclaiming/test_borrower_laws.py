"""Laws of reclaim between queues that borrow. The judge adds up CPUs and shares no code with the engine."""

from collections import Counter
from dataclasses import replace
from itertools import combinations
from random import Random

import pytest

from quotas.core.accounts.ledger import Charge, Ledger
from quotas.core.reclaiming import borrowers
from quotas.core.reclaiming.candidates import Candidates
from quotas.core.reclaiming.targeting import OVERSIZE
from quotas.core.reclaiming.victims import BETWEEN_BORROWERS
from quotas.core.simulation import Job, simulate_to_fixpoint
from quotas.core.trees.amounts import of_job
from tests.quotas.core.builders import NOON, cpu, occupied, quota, running, tree, unit
from tests.support.examples import examples

STREAMS = examples(20_000)
CROWDS = examples(2_000)
WEIGHTS = [0, 0.5, 1, 1, 1, 2, 3]


def queues(rng, left, top, levels, preempts):
    made = []
    for i in range(rng.randint(2, 3)):
        own = rng.choice([0, 0, left // 4, left // 2, rng.randint(0, left)])
        left -= own
        attributes = {"weight": str(rng.choice(WEIGHTS))}
        if rng.random() < preempts:
            attributes["preempt-policy"] = "PreemptLowerPriority"
        below = queues(rng, own, top, levels - 1, preempts) if levels and rng.random() < 0.5 else []
        made.append(quota(f"n{i}", own, top, *below, attributes=attributes))
    return made


def stream(rng, levels, preempts):
    """Jobs come in waves, and some end; after each wave the fleet comes to rest. Returns all stops, by wave."""
    total = rng.choice([rng.randint(4, 12), rng.randint(8, 40)])
    urgent = {"borrowing-priority": "2"} if rng.random() < 0.3 else {}
    found = tree(total, *queues(rng, total, total, levels, preempts), attributes={"reclaim": "FairShare", **urgent})
    ledger, leaves, jobs, stops = Ledger(found), [leaf.path for leaf in found.leaves], {}, []
    for wave in range(rng.randint(2, 5)):
        for i in range(rng.randint(1, 4)):
            size = rng.choice([1, 1, 1, 2, 2, 3, rng.randint(1, 8), max(total // 2, 1)])
            blank = unit(f"{wave}-{i}", priority=rng.randint(0, 2), after_s=wave)
            charge = Charge(rng.choice(leaves), of_job(cpu(size)), rng.random() < 0.95)
            jobs[blank.id] = Job(replace(blank, charge=charge))
        settled = simulate_to_fixpoint(ledger, jobs.values(), NOON)
        stops.append([(plan.preemptor, each.key, each.cause) for plan in settled.reclaims for each in plan.victims])
        for key, job in jobs.items():
            claimed = job.unit.has_claimed or key in settled.claimed
            kept = replace(
                job.unit, has_claimed=claimed, stopped_for=settled.stopped_for.get(key, job.unit.stopped_for)
            )
            jobs[key] = replace(settled.running.get(key) or replace(job, started_at=None), unit=kept)
        for key in [key for key in settled.running if rng.random() < 0.25]:
            ledger.release(jobs.pop(key).unit.charge)
    again = simulate_to_fixpoint(ledger, jobs.values(), NOON)
    assert simulate_to_fixpoint(ledger, [*again.running.values()], NOON).reclaims == []
    return stops


@pytest.mark.parametrize(("levels", "preempts"), [(0, 0.0), (2, 0.0), (1, 0.5)], ids=["queues", "teams", "priorities"])
def test_no_pair_of_jobs_stops_each_other_twice(levels, preempts):
    claims = 0
    for seed in range(STREAMS):
        pairs = Counter()
        for stops in stream(Random(seed), levels, preempts):
            now = {(one, other) for one, other, cause in stops if cause in BETWEEN_BORROWERS}
            back = {pair for pair in now if pair[::-1] in now}
            assert not back, f"stream {seed}: {back} stop each other with no event between"
            pairs.update((one, other) for one, other, cause in stops if cause in BETWEEN_BORROWERS)
        twice = [pair for pair, times in pairs.items() if times > 1]
        assert not twice, f"stream {seed}: stopped twice for the same job: {twice}"
        claims += pairs.total()
    assert claims > STREAMS // 10, "hardly any stream had a claim"


class Crowd:
    """Queues side by side, full; the judge knows sizes, mins and weights, and nothing of a ledger."""

    def __init__(self, rng):
        self.total = rng.randint(6, 40)
        left, self.low, self.weight = self.total, {}, {}
        for name in "abcd"[: rng.randint(2, 4)]:
            self.low[name] = rng.choice([0, left // 3, rng.randint(0, left)])
            left -= self.low[name]
            self.weight[name] = rng.choice(WEIGHTS)
        leaves = [
            quota(name, low, self.total, attributes={"weight": str(self.weight[name])})
            for name, low in self.low.items()
        ]
        self.ledger = Ledger(tree(self.total, *leaves, attributes={"reclaim": "FairShare"}))
        self.jobs, free = {}, self.total
        while free:
            size = min(free, rng.choice([1, 1, 2, 3, rng.randint(1, 9)]))
            self.jobs[f"j{len(self.jobs)}"] = rng.choice(list(self.low)), size
            free -= size
        self.there = occupied(self.ledger, *(running(key, leaf, size) for key, (leaf, size) in self.jobs.items()))
        self.leaf, self.asks = rng.choice(list(self.low)), rng.choice([1, 2, 3, rng.randint(1, 9)])

    def plan(self):
        claimant = unit("claimant", self.leaf, self.asks)
        found = borrowers.search(self.ledger, claimant, lambda: Candidates(self.ledger, self.there), lambda gone: True)
        return [victim.key for victim in found.victims] if found else []

    def uses(self, leaf, without=()):
        return sum(size for key, (at, size) in self.jobs.items() if at == leaf and key not in without)

    def share(self, leaf, used):
        borrowed = max(used - self.low[leaf], 0)
        return (1, borrowed) if not self.weight[leaf] and borrowed else (0, borrowed / (self.weight[leaf] or 1))

    def allows(self, chosen):
        """Whether they may go in this order: each of a side above its min that borrows more than the claimant's then would,
        also with all that is left over; none much larger than the claimant, none that has a min to come back by.
        """
        left = max(sum(self.jobs[key][1] for key in chosen) - self.asks, 0)
        gone = []
        for key in chosen:
            leaf, size = self.jobs[key]
            used = self.uses(leaf, gone)
            own = self.share(self.leaf, self.uses(self.leaf) + self.asks + left)
            if leaf == self.leaf or used <= self.low[leaf] or size >= OVERSIZE * self.asks:
                return False
            if not (own[0], own[1] + 1e-6) < self.share(leaf, used) or own[0] > self.share(leaf, used)[0]:
                return False
            gone.append(key)
        return all(
            self.uses(leaf, gone) + size > self.low[leaf] or not self.promises
            for leaf, size in map(self.jobs.get, gone)
        )

    @property
    def promises(self):
        return any(self.low.values())

    def suffices(self, chosen):
        return sum(self.jobs[key][1] for key in chosen) >= self.asks


def test_it_stops_by_the_definition_and_nobody_that_could_stay():
    plans = 0
    for seed in range(CROWDS):
        crowd = Crowd(Random(seed))
        chosen = crowd.plan()
        if not chosen:
            continue
        plans += 1
        assert crowd.suffices(chosen) and crowd.allows(chosen), f"crowd {seed}: {chosen}"
        fewer = [less for size in range(1, len(chosen)) for less in combinations(chosen, size)]
        assert not any(map(crowd.suffices, fewer)), f"crowd {seed}: {chosen} are more than needed"
    assert plans > CROWDS // 20


def test_it_stops_somebody_where_one_job_alone_would_do():
    for seed in range(CROWDS):
        crowd = Crowd(Random(seed))
        alone = [key for key in crowd.jobs if crowd.suffices([key]) and crowd.allows([key])]
        exact = [key for key in alone if crowd.jobs[key][1] == crowd.asks]
        assert not exact or crowd.plan(), f"crowd {seed}: {exact} would do"
