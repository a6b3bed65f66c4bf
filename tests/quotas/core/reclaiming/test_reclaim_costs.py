"""Reclaim stops no more than it has to: the least lost GPU-time, then the fewest gangs, then who is furthest above min."""

from dataclasses import dataclass
from itertools import combinations
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from quotas.core.accounts.ledger import Charge, Ledger
from quotas.core.queues.order import Unit
from quotas.core.reclaiming import covering
from quotas.core.reclaiming.candidates import RESTART_S, Running
from quotas.core.reclaiming.reclaim import plan_reclaim
from quotas.core.reclaiming.targeting import OVERSIZE
from quotas.core.trees.amounts import of_job
from tests.quotas.core.builders import NOON, quota, tree
from tests.support.examples import examples

GPU = "nvidia.com/gpu"
HOUR = 3600.0
SIZES, SHARES = (1, 2, 4, 8, 16, 32, 64, 128, 256), (60, 10, 8, 12, 4, 3, 1, 1, 1)
"""Gangs as training fleets have them: most are of one GPU, and one in a hundred takes a quarter of the fleet."""


def charge(leaf: str, gpus: int) -> Charge:
    return Charge(f"root/{leaf}", of_job({GPU: gpus}))


def ran(key: str, gpus: int, hours: float = 1.0, leaf: str = "b", priority: int = 0, **fields) -> Running:
    lost_s = fields.pop("lost_s", hours * HOUR)
    return Running(key, charge(leaf, gpus), priority, NOON, lost_s=lost_s, **fields)


def anywhere(_gone) -> bool:
    return True


def stopped(total: int, gpus: int, *jobs: Running, mins: tuple[int, ...] = (0, 0)) -> list[str] | None:
    """For a claimant of leaf a, which is promised all it asks for; the jobs of b and c have the given mins."""
    leaves = [quota(name, {GPU: low}, {GPU: total}) for name, low in zip("bc", mins, strict=True)]
    found = Ledger.from_charges(
        tree({GPU: total}, quota("a", {GPU: gpus}, {GPU: total}), *leaves), (job.charge for job in jobs)
    )
    made = plan_reclaim(found, Unit("claims", "claims", charge("a", gpus), 0, NOON), jobs, anywhere)
    return None if made is None else [victim.key for victim in made.victims]


def test_it_stops_one_gpu_for_one_gpu_though_a_gang_of_64_started_later():
    assert stopped(65, 1, ran("large", 64, 0.1), ran("small", 1, 2)) == ["small"]


def test_it_stops_the_small_job_though_the_large_gang_has_saved_its_work():
    assert stopped(65, 1, ran("large", 64, lost_s=0.0, checkpointed=True), ran("small", 1, 1)) == ["small"]


def test_it_stops_the_gang_that_fits_best():
    assert stopped(12, 4, ran("eight", 8, 0.1), ran("four", 4, 0.2)) == ["four"]
    assert stopped(12, 6, *(ran(f"two{i}", 2, 1) for i in range(3)), ran("six", 6, 1)) == ["six"]


def test_it_stops_what_has_run_least_among_gangs_of_one_size():
    assert stopped(6, 2, ran("old", 2, 9), ran("young", 2, 1), ran("middle", 2, 5)) == ["young"]


def test_it_stops_several_small_ones_where_they_lose_less_than_a_large_one():
    assert stopped(8, 4, ran("four", 4, 9), *(ran(f"one{i}", 1, 1) for i in range(4))) == [f"one{i}" for i in range(4)]


def test_it_stops_a_lower_priority_though_that_costs_more():
    assert stopped(8, 4, ran("low", 4, 9, priority=0), ran("high", 4, 0.1, priority=1)) == ["low"]


def test_it_takes_from_the_team_that_is_furthest_above_its_min_when_that_costs_the_same():
    jobs = ran("b0", 30, leaf="b"), ran("b1", 30, leaf="b"), ran("c0", 30, leaf="c")
    assert stopped(90, 30, *jobs, mins=(30, 0)) in (["b0"], ["c0"])
    assert stopped(90, 30, *jobs, mins=(0, 20)) == ["b0"]
    assert stopped(90, 30, *jobs, mins=(55, 0)) == ["c0"]


def test_it_takes_from_a_queue_of_weight_0_before_others_and_judges_one_that_borrows_nothing():
    def victims(*jobs: Running) -> list[str] | None:
        leaves = [
            quota(name, {GPU: low}, {GPU: 12}, attributes={"weight": "0"} if name == "b" else {})
            for name, low in (("a", 4), ("b", 4), ("c", 0))
        ]
        found = Ledger.from_charges(tree({GPU: 12}, *leaves), (job.charge for job in jobs))
        made = plan_reclaim(found, Unit("claims", "claims", charge("a", 4), 0, NOON), jobs, anywhere)
        return None if made is None else [victim.key for victim in made.victims]

    assert victims(ran("b0", 4, leaf="b"), ran("c0", 4, leaf="c"), ran("c1", 4, leaf="c")) in (["c0"], ["c1"])
    assert victims(ran("b0", 4, leaf="b"), ran("b1", 4, leaf="b"), ran("c0", 4, leaf="c")) in (["b0"], ["b1"])


def test_it_chooses_anew_where_the_cheapest_are_not_the_claimants_to_take():
    """b is 2 above its min: of its cheap jobs it takes two, and the rest from c."""
    jobs = [ran(f"b{i}", 1, 0.1, leaf="b") for i in range(8)] + [ran("c4", 4, 1, leaf="c"), ran("c8", 8, 1, leaf="c")]
    assert sorted(stopped(20, 6, *jobs, mins=(6, 0))) == ["b0", "b1", "c4"]


def test_it_evicts_in_the_documented_example_what_loses_least():
    """docs/quotas.md, "The least work"."""

    def chosen(saved_min: float) -> list[str] | None:
        sweeps = [ran(f"sweep-{i}", 1, 1) for i in range(1, 5)]
        tune, giant = ran("tune", 4, 0.5), ran("giant", 64, 1 / 60)
        return stopped(80, 4, *sweeps, tune, ran("train", 8, lost_s=60 * saved_min, checkpointed=True), giant)

    assert chosen(saved_min=5) == ["train"]
    assert chosen(saved_min=120) == ["tune"]


def test_it_says_how_many_gpu_hours_are_lost():
    found = Ledger.from_charges(
        tree({GPU: 8}, quota("a", {GPU: 8}, {GPU: 8}), quota("b", {}, {GPU: 8})), [charge("b", 8)]
    )
    made = plan_reclaim(found, Unit("claims", "claims", charge("a", 8), 0, NOON), [ran("b0", 8, 2.5)], anywhere)
    assert made is not None and [victim.lost_gpu_hours for victim in made.victims] == [20.0]


@dataclass
class Reclaims:
    needed: int = 0
    stopped: int = 0
    worst: float = 0.0


def training_reclaims(seed: int, many: int) -> Reclaims:
    """Each on 1,024 GPUs that borrowers of priority 0 and 1 hold, for a job of those sizes that lacks some of its GPUs."""
    rng, result = Random(seed), Reclaims()
    whole = tree({GPU: 1024}, quota("a", {GPU: 256}, {GPU: 1024}), quota("b", {}, {GPU: 1024}))
    for _ in range(many):
        jobs, used = [], 0
        while (size := rng.choices(SIZES, SHARES)[0]) <= 1024 - used:
            fields = {"hours": rng.expovariate(1 / 8), "priority": rng.choice([0, 1])}
            jobs.append(ran(f"b{len(jobs)}", size, **fields))
            used += size
        asked = rng.choices(SIZES, SHARES)[0]
        need = max(asked - (1024 - used), 0)
        found = Ledger.from_charges(whole, (job.charge for job in jobs))
        made = plan_reclaim(found, Unit("claims", "claims", charge("a", asked), 0, NOON), jobs, anywhere)
        assert made is not None
        freed = made.freed.get(GPU, 0)
        result.needed, result.stopped = result.needed + need, result.stopped + freed
        result.worst = max(result.worst, freed / need if need else 0.0)
    return result


def test_it_stops_at_most_1_2_gpus_for_each_gpu_that_150_reclaims_need():
    for seed in range(4):
        result = training_reclaims(seed, 150)
        assert result.stopped <= 1.2 * result.needed, result
        assert result.worst < OVERSIZE, result


@dataclass(frozen=True)
class World:
    """Flat queues of one resource, all of it held; the claimant is promised what it asks for."""

    mins: tuple[int, ...]
    jobs: tuple[tuple[int, int, int, int], ...]
    """(leaf, GPUs, priority, hours it has run)."""
    asked: int

    @property
    def total(self) -> int:
        return max(sum(job[1] for job in self.jobs), self.asked + sum(self.mins))

    @property
    def need(self) -> int:
        return self.asked + sum(job[1] for job in self.jobs) - self.total

    def suffices(self, chosen: tuple[int, ...]) -> bool:
        """By the definition: enough is freed, and each queue was above its min when its last gang went, the largest."""
        for leaf, low in enumerate(self.mins):
            used = sum(job[1] for job in self.jobs if job[0] == leaf)
            gone = [self.jobs[i][1] for i in chosen if self.jobs[i][0] == leaf]
            if gone and used - sum(gone) + max(gone) <= low:
                return False
        return sum(self.jobs[i][1] for i in chosen) >= self.need

    def choices(self, most: int, priority: int) -> list[tuple[int, ...]]:
        """All that suffice, of gangs of fewer GPUs than that and of no higher priority."""
        allowed = [i for i, job in enumerate(self.jobs) if job[1] < most and job[2] <= priority]
        return [c for n in range(len(allowed) + 1) for c in combinations(allowed, n) if self.suffices(c)]

    def cost(self, chosen: tuple[int, ...]) -> float:
        return sum(self.jobs[i][1] * (self.jobs[i][3] * HOUR + RESTART_S) for i in chosen)

    def victims(self) -> tuple[int, ...] | None:
        leaves = [quota(f"n{i}", {GPU: low}, {GPU: self.total}) for i, low in enumerate(self.mins)]
        whole = tree({GPU: self.total}, quota("a", {GPU: self.asked}, {GPU: self.total}), *leaves)
        jobs = [
            ran(str(i), gpus, hours, f"n{leaf}", priority) for i, (leaf, gpus, priority, hours) in enumerate(self.jobs)
        ]
        found = Ledger.from_charges(whole, (job.charge for job in jobs))
        made = plan_reclaim(found, Unit("claims", "claims", charge("a", self.asked), 0, NOON), jobs, anywhere)
        return None if made is None else tuple(int(victim.key) for victim in made.victims)


@st.composite
def worlds(draw) -> World:
    leaves = draw(st.integers(1, 3))
    job = st.tuples(
        st.integers(0, leaves - 1),
        st.sampled_from([1, 1, 2, 3, 4, 8, 16]),
        st.integers(0, 1),
        st.integers(0, 9),
    )
    jobs = tuple(draw(st.lists(job, min_size=1, max_size=9)))
    used = [sum(gpus for leaf, gpus, _, _ in jobs if leaf == i) for i in range(leaves)]
    mins = tuple(draw(st.integers(0, most)) for most in used)
    return World(mins, jobs, draw(st.integers(1, 20)))


LAW = settings(max_examples=examples(1000), deadline=None)


@LAW
@given(worlds())
def test_it_never_stops_a_gang_of_four_times_the_need_while_smaller_ones_of_its_priority_would_do(world):
    for victim in world.victims() or ():
        _, gpus, priority, _ = world.jobs[victim]
        if world.need > 0 and gpus >= OVERSIZE * world.need:
            assert world.choices(OVERSIZE * world.need, priority) == []


@LAW
@given(worlds())
def test_it_has_victims_whenever_some_choice_suffices(world):
    victims = world.victims()
    if world.need > 0:
        assert (victims is not None) == bool(world.choices(10**6, 10**6))
    assert victims is None or world.suffices(victims)


@LAW
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=9), st.integers(1, 30))
def test_the_cheapest_cover_is_the_cheapest_of_all(items, need):
    sizes, costs = [size for size, _ in items], [float(cost) for _, cost in items]
    chosen = covering.cheapest(np.array(sizes, dtype=np.int64), np.array(costs), need)
    every = [c for n in range(len(items) + 1) for c in combinations(range(len(items)), n)]
    enough = [c for c in every if sum(sizes[i] for i in c) >= need]
    assert bool(chosen) == bool(enough)
    if enough:
        assert sum(sizes[i] for i in chosen) >= need
        assert sum(costs[i] for i in chosen) == min(sum(costs[i] for i in c) for c in enough)


def test_a_cover_of_bytes_is_enough_though_it_is_chosen_in_coarse_units():
    sizes = [Random(i).randint(10**9, 10**11) for i in range(60)]
    chosen = covering.cheapest(np.array(sizes), np.array(sizes, dtype=np.float64), 3 * 10**11)
    assert 3 * 10**11 <= sum(sizes[i] for i in chosen) <= 3.3 * 10**11
