"""The reservation for a big gang: what is kept, who may use it meanwhile, and that the gang is never delayed."""

import heapq
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.core.admission import backfill_policy
from jobs.core.admission.backfill_policy import RuntimeEstimates
from jobs.core.admission.placement_cache import PlacementCache
from jobs.core.gang.types import CapacityHold, Gang
from jobs.core.reasons import Code
from jobs.core.scheduling.backfill_reservation import Run, Runs
from jobs.core.scheduling.scheduler import Scheduler
from jobs.core.settings import CycleSettings
from tests.jobs.core.builders import NOON, cluster, gang, node
from tests.support.examples import examples

GPUS = 4
MINUTE = 60.0
DEFAULTS = CycleSettings()
PATIENCE = DEFAULTS.reservation_patience_s / MINUTE


@dataclass
class Yard:
    """Clusters of nodes with 4 GPUs each, jobs that end when their time is over; a minute is the unit of time."""

    sizes: list[int]
    now: float = 0.0
    runs: Runs = field(default_factory=Runs)
    waiting: dict[int, Gang] = field(default_factory=dict)
    promises: dict[int, CapacityHold] = field(default_factory=dict)
    leaving: list[tuple[float, int]] = field(default_factory=list)
    lasting: dict[int, float] = field(default_factory=dict)
    starts: dict[int, float] = field(default_factory=dict)
    promised: dict[int, float] = field(default_factory=dict)
    """When each gang that nodes were ever kept for was to start, as first told."""

    def __post_init__(self) -> None:
        self.kept = self.fresh()

    @property
    def time(self) -> datetime:
        return NOON + timedelta(seconds=self.now * MINUTE)

    def fresh(self) -> Scheduler:
        sites = [cluster(f"c{i}", [node(GPUS)] * nodes) for i, nodes in enumerate(self.sizes)]
        made = Scheduler(places=PlacementCache(sites))
        for promise in self.promises.values():
            made.places.hold(promise)
        for each in self.waiting.values():
            made.put(each)
        return made

    def submit(self, job: int, gpus: int, lasts: float, *, known: bool = True, priority: int = 0) -> None:
        whole, rest = divmod(gpus, GPUS)
        asked = {"workers": whole, "gpus": GPUS} if whole and not rest else {"workers": gpus, "gpus": 1}
        said = lasts * MINUTE if known else None
        made = gang(f"j{job:03}", masters=0, job_id=job, runtime_s=said, priority=priority, **asked)
        made = replace(made, queued_at=self.time)
        self.waiting[job], self.lasting[job] = made, lasts
        self.kept.put(made)

    def cycle(self) -> None:
        plan = self.kept.run(self.time, lambda: self.runs)
        if self.kept.places.reservation:
            kept = self.kept.places.reservation
            self.promised.setdefault(kept.gang.job_id, (kept.reserved.starts - NOON.timestamp()) / MINUTE)
        for each in plan.placed:
            job = each.gang.job_id
            del self.waiting[job]
            self.promises[job] = promise = each.placement.hold((job, 1))
            since = self.time.timestamp()
            self.runs.by_job[job] = Run("default", each.gang.devices, since, each.gang.runtime_s, promise.key)
            self.starts[job] = self.now
            heapq.heappush(self.leaving, (self.now + self.lasting[job], job))
        if plan.more:
            self.cycle()

    def leave(self) -> None:
        while self.leaving and self.leaving[0][0] <= self.now:
            job = heapq.heappop(self.leaving)[1]
            self.kept.places.release(self.promises.pop(job).key)
            del self.runs.by_job[job]

    def play(self, arrivals: list[tuple[float, int, float]], *, known: bool = True) -> dict[int, float]:
        """When each job of (time, GPUs, run time) starts."""
        coming = sorted((at, job, gpus, lasts) for job, (at, gpus, lasts) in enumerate(arrivals, start=1))
        late = [at + PATIENCE for at, *_ in coming]
        while coming or self.leaving:
            self.now = min([at for at, *_ in coming[:1]] + [end for end, _ in self.leaving[:1]] + late[:1])
            late = [at for at in late if at > self.now]
            self.leave()
            while coming and coming[0][0] <= self.now:
                _, job, gpus, lasts = coming.pop(0)
                self.submit(job, gpus, lasts, known=known)
            self.cycle()
        return self.starts


traffic = st.lists(st.tuples(st.integers(0, 40), st.sampled_from([1, 2, 4, 8, 12]), st.integers(1, 40)), max_size=20)
fleets = st.lists(st.integers(1, 4), min_size=1, max_size=3)


@settings(deadline=None, max_examples=examples(60))
@given(traffic, fleets)
def test_it_never_delays_a_gang_it_drains_for_when_run_times_are_known(arrivals, nodes):
    yard = Yard(nodes)
    starts = yard.play(arrivals)
    assert all(starts[job] <= at for job, at in yard.promised.items())


@settings(deadline=None, max_examples=examples(60))
@given(traffic, fleets, st.booleans())
def test_it_starts_every_gang_that_some_cluster_holds_empty(arrivals, nodes, known):
    starts = Yard(nodes).play(arrivals, known=known)
    fitting = {job for job, (_, gpus, _) in enumerate(arrivals, start=1) if -(-gpus // GPUS) <= max(nodes)}
    assert starts.keys() >= fitting


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 4), st.lists(st.tuples(st.integers(1, 2), st.integers(1, 30)), min_size=30, max_size=40))
@pytest.mark.parametrize("known", [True, False])
def test_a_big_gang_starts_within_a_bound_however_many_small_ones_come(known, nodes, small):
    arrivals = [(float(i // 2), gpus, float(lasts)) for i, (gpus, lasts) in enumerate(small)]
    starts = Yard([nodes]).play([*arrivals, (1.0, nodes * GPUS, 5.0)], known=known)
    assert starts[len(arrivals) + 1] <= 1 + PATIENCE + max(lasts for _, lasts in small)


@settings(deadline=None, max_examples=25)
@given(traffic, fleets)
def test_one_that_was_started_again_keeps_the_same_nodes_for_the_same_gang(arrivals, nodes):
    yard = Yard(nodes)
    yard.play([*arrivals, (0.0, max(nodes) * GPUS, 100.0), (1.0, max(nodes) * GPUS, 1.0)][:12])
    for job, (_, gpus, lasts) in enumerate(arrivals, start=100):
        yard.submit(job, gpus, lasts)
    yard.now += PATIENCE
    fresh = yard.fresh()
    plans = [each.run(yard.time, lambda: yard.runs) for each in (yard.kept, fresh)]
    assert yard.kept.places.reservation == fresh.places.reservation
    assert len({tuple((p.gang.name, str(p.placement.assignment.nodes())) for p in plan.placed) for plan in plans}) == 1


def test_it_lets_only_those_onto_kept_nodes_who_are_gone_in_time():
    starts = Yard([2]).play([(0, 4, 60), (1, 8, 5), (20, 2, 40), (21, 2, 41)])
    assert starts == {1: 0, 2: 60, 3: 20, 4: 65}


def test_it_believes_guesses_only_for_so_long():
    late = DEFAULTS.estimate_trust_s / MINUTE
    yard = Yard([2])
    yard.runs.estimates.learn("default", 2, 60.0)
    starts = yard.play([(0, 4, 2 * late), (1, 8, 5), (20, 2, 1), (late + 30, 2, 1)], known=False)
    assert starts[3] == 20 and starts[4] > 2 * late


def test_it_keeps_nothing_from_one_of_higher_priority():
    yard = Yard([2])
    for job, gpus in ((1, 4), (2, 8)):
        yard.submit(job, gpus, 60)
    yard.cycle()
    yard.now = PATIENCE
    yard.submit(3, 4, 600, priority=1)
    yard.submit(4, 4, 600)
    yard.cycle()
    assert yard.starts.keys() == {1, 3}


def test_it_tells_for_whom_nodes_are_kept_and_until_when():
    yard = Yard([2])
    for job, gpus in ((1, 4), (2, 8)):
        yard.submit(job, gpus, 60)
    yard.cycle()
    yard.now = PATIENCE
    yard.submit(3, 4, 600)
    told = {each.gang.job_id: each.reason for each in yard.kept.run(yard.time, lambda: yard.runs).waits}
    assert told[2].clusters[0].message.endswith("; 2 nodes are kept for it, expected to be free at 13:00:00 UTC")
    assert [(each.code, each.message) for each in told[3].clusters] == [
        (Code.KEPT_FOR_GANG, "keeps 2 nodes for a gang that comes first until it starts, expected at 13:00:00 UTC")
    ]


def test_it_keeps_nodes_on_while_the_pods_of_one_that_was_deleted_go():
    yard = Yard([2])
    busy = yard.kept.places.node_facts("c0", "c0-0")
    used = ("c0-0", {"cpu": 1000, "nvidia.com/gpu": GPUS, "pods": 1})
    yard.kept.places.set_node("c0", replace(busy, requested=used[1]))
    yard.runs.by_job[1] = Run("default", GPUS, NOON.timestamp(), 600 * MINUTE, ("j001", 1), "c0", (used,))
    yard.submit(2, 2 * GPUS, 60)
    yard.cycle()
    yard.now = PATIENCE
    yard.submit(3, GPUS, 900)
    yard.cycle()
    del yard.runs.by_job[1]
    yard.cycle()
    assert not yard.starts
    yard.kept.places.set_node("c0", busy)
    yard.now += 1
    yard.cycle()
    assert yard.starts.keys() == {2}


def test_it_counts_nobody_twice_who_has_left_a_node_before_that_is_known_of_its_run():
    yard = Yard([2])
    used = ("c0-0", {"cpu": 1000, "nvidia.com/gpu": GPUS, "pods": 1})
    yard.runs.by_job[1] = Run("default", GPUS, NOON.timestamp(), 600 * MINUTE, ("j001", 1), "c0", (used,))
    yard.submit(2, 2 * GPUS, 60)
    yard.submit(3, GPUS, 900)
    yard.now = PATIENCE
    yard.cycle()
    assert yard.starts.keys() == {2}


def test_it_does_not_keep_nodes_for_ever_when_it_is_no_longer_known_when_they_are_whole():
    yard = Yard([2])
    used = ("c0-0", {"cpu": 1000, "nvidia.com/gpu": GPUS, "pods": 1})
    yard.kept.places.set_node("c0", replace(yard.kept.places.node_facts("c0", "c0-0"), requested=used[1]))
    yard.runs.by_job[1] = Run("default", GPUS, NOON.timestamp(), 600 * MINUTE, ("j001", 1), "c0", (used,))
    yard.submit(2, 2 * GPUS, 60)
    yard.cycle()
    yard.now = PATIENCE
    yard.submit(3, GPUS, 900)
    yard.cycle()
    del yard.runs.by_job[1]
    yard.now += DEFAULTS.reservation_linger_s / MINUTE
    yard.cycle()
    assert yard.starts.keys() == {3}


def test_it_guesses_a_run_by_the_last_one_alike():
    estimates = RuntimeEstimates()
    assert estimates.estimate_runtime("ann", 8) == DEFAULTS.unknown_runtime_s
    estimates.learn("ann", 8, 50.0)
    estimates.learn("ann", 16, 70.0)
    assert (
        estimates.estimate_runtime("ann", 8),
        estimates.estimate_runtime("ann", 1),
        estimates.estimate_runtime("bob", 8),
    ) == (
        50.0,
        70.0,
        DEFAULTS.unknown_runtime_s,
    )


def test_it_expects_an_overdue_run_to_go_on_by_half_of_what_it_ran():
    assert backfill_policy.expected_end(100.0, 50.0, now=120.0) == 150.0
    assert backfill_policy.expected_end(100.0, 50.0, now=200.0) == 250.0 + backfill_policy.OVERDUE_S


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("1h30m", 5400), ("7", 7), ("soon", None), ("", None)])
def test_it_reads_a_declared_run_time(text, seconds):
    assert (
        backfill_policy.declared_runtime({"metadata": {"annotations": {backfill_policy.ANNOTATION: text}}}) == seconds
    )
