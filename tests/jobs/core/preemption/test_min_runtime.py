"""A job runs for the min-runtime of its queue before another queue's promise evicts it, and the promise is kept then."""

from collections import defaultdict
from random import Random

import pytest

from quotas.core.reclaiming import reclaim
from tests.jobs.core.builders import GPU
from tests.jobs.core.playing import VirtualFleet
from tests.quotas.core.builders import quota
from tests.support.examples import examples

HOUR = 3600.0
RUNTIME = 600.0
SLACK = 5.0
"""Seconds from the end of the last eviction to the start: the cycles in between."""


def leaf(name: str, low: int, high: int, **attributes: str) -> dict:
    return quota(
        name, {GPU: low}, {GPU: high}, attributes={key.replace("_", "-"): value for key, value in attributes.items()}
    )


def fleet(gpus: int = 16, **of_b: str) -> VirtualFleet:
    """a is promised half; b is promised nothing."""
    return VirtualFleet.of(gpus, leaf("a", gpus // 2, gpus), leaf("b", 0, gpus, **{"min_runtime": "10m", **of_b}))


def kills(played: VirtualFleet) -> list[tuple[int, float]]:
    return [(kill.job, round(kill.ran)) for kill in played.kills]


def test_it_evicts_when_the_min_runtime_is_over_and_not_before():
    played = fleet()
    for job in (1, 2):
        played.submit(job, "b", 1, 8, 10 * HOUR)
    played.submit(3, "a", 1, 8, HOUR, at=60)
    played.play(HOUR)
    assert len(played.kills) == 1 and RUNTIME <= played.kills[0].ran <= RUNTIME + 60
    assert played.first_start("a") <= played.kills[0].at + played.grace + SLACK


def test_it_evicts_at_once_what_has_run_long_enough():
    played = fleet()
    played.submit(1, "b", 1, 8, 10 * HOUR)
    played.submit(2, "b", 1, 8, 10 * HOUR, at=900)
    played.submit(3, "a", 1, 8, HOUR, at=1000)
    played.play(HOUR)
    assert kills(played) == [(1, 1000)]


def test_it_takes_unprotected_borrowers_first_whatever_they_lose():
    tree = leaf("a", 8, 16), leaf("b", 0, 16, min_runtime="10m"), leaf("c", 0, 16)
    played = VirtualFleet.of(16, *tree)
    played.submit(1, "c", 1, 8, 10 * HOUR)
    played.submit(2, "b", 1, 8, 10 * HOUR, at=5000)
    played.submit(3, "a", 1, 8, HOUR, at=5001)
    played.play(2 * HOUR)
    assert kills(played) == [(1, 5001)]


def test_it_evicts_none_for_a_claimant_before_the_last_it_needs_may_leave():
    """Else what the first one frees would stand idle for minutes."""
    played = fleet(32)
    played.submit(1, "b", 2, 8, 10 * HOUR)
    played.submit(2, "b", 2, 8, 10 * HOUR, at=300)
    played.submit(3, "a", 2, 8, HOUR, at=301)
    played.submit(4, "a", 1, 8, HOUR, at=10 * HOUR)
    played.play(HOUR)
    assert [job for job, _ in kills(played)] == [1] and played.kills[0].ran >= RUNTIME


def test_small_borrowers_that_come_and_go_do_not_starve_the_claimant():
    played = fleet()
    for job in range(100, 500):
        played.submit(job, "b", 1, 1, 240.0)
    played.submit(1, "b", 1, 8, 10 * HOUR, priority=5)
    played.submit(3, "a", 1, 8, HOUR, at=60)
    played.play(HOUR)
    assert played.first_start("a") <= 300 + SLACK, "what ends is set aside for the claimant"
    assert played.kills == []


def test_it_lends_nothing_of_what_is_set_aside_until_the_protection_ends():
    """Of two jobs of b one ends early: a needs both places, and b's next job must not take the free one."""
    played = fleet(32)
    for job, lasts in ((1, 120.0), (2, 10 * HOUR), (3, 10 * HOUR), (4, 10 * HOUR)):
        played.submit(job, "b", 1, 8, lasts)
    played.submit(5, "a", 2, 8, HOUR, at=60)
    played.submit(6, "b", 1, 8, 10 * HOUR, at=70)
    played.play(HOUR)
    assert played.first_start("a") <= RUNTIME + 60 + played.grace + SLACK
    assert 6 not in [job for at, job in played.starts if at < played.first_start("a")]


def test_others_start_beside_what_is_set_aside():
    """a needs two whole nodes: one is free, one is to be; c fits beside the halves that b has of the other two."""
    tree = leaf("a", 16, 32), leaf("b", 0, 32, min_runtime="10m"), leaf("c", 8, 32)
    played = VirtualFleet.of(32, *tree)
    for job, gpus in ((1, 8), (2, 5), (3, 5)):
        played.submit(job, "b", 1, gpus, 10 * HOUR)
    played.submit(4, "a", 2, 8, HOUR, at=60)
    played.submit(5, "b", 1, 8, 10 * HOUR, at=70)
    played.submit(6, "c", 1, 3, HOUR, at=80)
    played.play(HOUR)
    assert (80.0, 6) in [(round(at), job) for at, job in played.starts]
    assert 5 not in [job for at, job in played.starts if at < played.first_start("a")]
    assert RUNTIME <= played.first_start("a") <= RUNTIME + 60 + played.grace + SLACK


def test_priority_within_the_own_queue_is_not_held_up():
    played = VirtualFleet.of(
        16, leaf("a", 8, 16), leaf("b", 8, 16, min_runtime="10m", preempt_policy="PreemptLowerPriority")
    )
    for job in (1, 2):
        played.submit(job, "b", 1, 8, 10 * HOUR)
    played.submit(3, "b", 1, 8, HOUR, at=60, priority=5)
    played.play(HOUR)
    assert [ran for _, ran in kills(played)] == [60]


def test_a_more_urgent_job_of_the_claimants_queue_comes_before_it_when_the_protection_ends():
    played = fleet()
    for job in (1, 2):
        played.submit(job, "b", 1, 8, 10 * HOUR)
    played.submit(3, "a", 1, 8, HOUR, at=60)
    played.submit(4, "a", 1, 8, HOUR, at=120, priority=5)
    played.play(HOUR)
    assert [job for _, job in played.starts if job in (3, 4)][0] == 4


def test_several_claimants_are_all_served_when_the_protection_ends():
    played = fleet(64)
    for job in range(1, 9):
        played.submit(job, "b", 1, 8, 10 * HOUR)
    for job in range(11, 15):
        played.submit(job, "a", 1, 8, HOUR, at=job * 10)
    played.play(HOUR)
    started = [at for at, job in played.starts if job in range(11, 15)]
    assert len(started) == 4 and max(started) <= RUNTIME + 60 + played.grace + SLACK


def random_tree(rng: Random, gpus: int) -> tuple[dict[str, int], dict[str, int], list[dict]]:
    left, low, protects, tree = gpus, {}, {}, []
    for name in "abcd"[: rng.choice([2, 3, 4])]:
        low[name] = rng.choice([0, left // 2, rng.randint(0, left)])
        left -= low[name]
        protects[name] = rng.choice([0, 0, 300, 600, 1800])
        attributes = {"min_runtime": f"{protects[name]}s", "weight": rng.choice(["1", "2"])}
        attributes["preempt_policy"] = rng.choice(["Never", "Never", "PreemptLowerPriority"])
        tree.append(leaf(name, low[name], gpus, **attributes))
    return low, protects, tree


@pytest.mark.parametrize("seed", range(examples(200)))
def test_no_job_leaves_before_its_min_runtime_and_no_claimant_waits_longer_than_the_longest(seed):
    """By arithmetic over starts and kills alone. Pods of one GPU each, so that no node is too small for what is free."""
    rng = Random(seed)
    nodes = rng.choice([2, 3, 4])
    gpus = nodes * 8
    low, protects, tree = random_tree(rng, gpus)
    played = VirtualFleet.of(gpus, *tree)
    played.grace = rng.choice([0.0, 30.0])
    for job in range(1, rng.randint(15, 50)):
        at = rng.choice([0, rng.randint(0, 5400)])
        size = rng.choice([1, 1, 2, 4, 8, gpus // 2])
        lasts = rng.choice([120, 900, 3600, 20000]) * rng.uniform(0.5, 1.5)
        played.submit(job, rng.choice(list(low)), size, 1, lasts, at=at, priority=rng.choice([0, 0, 1]))
    judge = Judge(played, low, protects)
    while played.now < 3 * HOUR:
        played.play(played.now + 20.0, tick=10.0)
        judge.look()
    for kill in played.kills:
        victim, preemptor = played.gangs[kill.job], played.gangs[kill.preemptor]
        assert victim.leaf == preemptor.leaf or kill.ran >= protects[victim.leaf.rpartition("/")[2]], kill


class Judge:
    """Since when each waiting job could have been promised its place whatever else its queue asks for."""

    def __init__(self, played: VirtualFleet, low: dict[str, int], protects: dict[str, int]) -> None:
        self.played, self.low, self.patience = played, low, max(protects.values()) + 2 * played.grace + 45.0
        self.since: dict[int, float] = {}

    def look(self) -> None:
        played, asked, waits = self.played, defaultdict(int), defaultdict(list)
        for gang in [*played.running.values(), *played.scheduler.evicting.values()]:
            asked[gang.charge.leaf.rpartition("/")[2]] += gang.total[GPU]
        for gang in played.waiting.values():
            name = gang.leaf.rpartition("/")[2]
            asked[name] += gang.total[GPU]
            waits[name].append(gang.job_id)
        entitled = {job for name, jobs in waits.items() if asked[name] <= self.low[name] for job in jobs}
        self.since = {job: self.since.get(job, played.now) for job in entitled}
        late = {job: played.now - since for job, since in self.since.items() if played.now - since > self.patience}
        assert not late, f"promised and not served: {late}"


def test_a_search_that_failed_beside_what_its_cycle_placed_is_made_again_once_that_has_started():
    """a and b have two halves of two nodes; b's next job needs a half, and finds two quarters free. a's next job takes one.

    It would be withdrawn first, and then a borrows no more; once it runs it is protected, and an older one goes.
    """
    played = VirtualFleet.of(16, leaf("a", 8, 16, min_runtime="10m"), leaf("b", 8, 16), leaf("c", 0, 16))
    for at, (name, gpus) in enumerate([("a", 4), ("b", 2), ("c", 2)] * 2):
        played.submit(at + 1, name, 1, gpus, 1000.0 if name == "c" else 10 * HOUR, at=at)
    played.submit(7, "b", 1, 4, HOUR, at=2000)
    played.submit(8, "a", 1, 2, 10 * HOUR, at=2000)
    played.play(HOUR)
    starts = {job: at for at, job in played.starts}
    assert round(starts[8]) == 2000
    assert [(kill.job in (1, 4), round(kill.at)) for kill in played.kills] == [(True, 2000)]
    assert starts[7] <= 2000 + played.grace + SLACK


def test_a_search_that_failed_is_made_again_once_for_a_placement_and_not_while_nothing_happens(monkeypatch):
    """b has half of each node, so that none holds what its waiting jobs ask for, whatever a gives back."""
    played = VirtualFleet.of(32, leaf("a", 8, 32, min_runtime="10m"), leaf("b", 24, 32))
    for at, gpus in enumerate((4, 4, 4, 2)):
        played.submit(2 * at + 1, "b", 1, 4, 10 * HOUR, at=2 * at)
        played.submit(2 * at + 2, "a", 1, gpus, 10 * HOUR, at=2 * at + 1)
    for gpus in (5, 6, 7, 8):
        played.submit(10 + gpus, "b", 1, gpus, HOUR, at=2000)
    played.submit(30, "a", 1, 2, 10 * HOUR, at=3000)
    searched, search = [], reclaim.search
    monkeypatch.setattr(
        reclaim,
        "search",
        lambda *args: searched.append((played.cycles, round(played.now), args[1].id)) or search(*args),
    )
    played.play(2 * HOUR)
    assert played.kills == [] and played.starts[-1] == (3000.0, 30)
    cycles = sorted({(at, cycle) for cycle, at, _ in searched})
    assert [at for at, _ in cycles] == [2000, 3000, 3000]
    assert {job for _, _, job in searched} == {"15", "16", "17", "18"}
