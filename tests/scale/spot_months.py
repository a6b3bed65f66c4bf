"""One training on a spot pool for a month of virtual time.

The product decides: its scheduler where the job starts and grows (`jobs.core.scheduling`), its supervisor which pods are
asked to leave (`supervisor.core.planning`), its rules of resizing which size is left and how long it rests. The training is
arithmetic: workers that run make steps, a change of their number stops them all for a while.
"""

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count

from jobs.core.admission.placement_cache import PlacementCache
from jobs.core.admission.snapshot import Quota
from jobs.core.gang.types import CapacityHold, Gang
from jobs.core.placement.types import Member, NodeFacts
from jobs.core.policies.propagation import PolicySpec
from jobs.core.resizing import after_reclaim, pace
from jobs.core.scheduling.growth import Growth, GrowthPlan, Spare, plan_growth
from jobs.core.scheduling.scheduler import Scheduler
from jobs.core.scheduling.small_starts import SmallStart, find_small_start
from jobs.runtime.notices import Scope
from quotas.core.accounts.ledger import Charge, Ledger
from quotas.core.trees import amounts
from supervisor.core import planning
from supervisor.core.facts import How, PodFacts
from supervisor.core.signals import Signal
from tests.jobs.core.placement.cast import APIS, GPU, gang
from tests.quotas.core.builders import quota, tree
from tests.scale.spot_pool import Change, Pool

EACH = 8
"""GPUs of a node, and of the pod on it."""
LEAF, JOB, CLUSTER, ROLE = "root/vision", 1, "spot", "worker"
CHECKPOINT_S, BLOCK_S = 1800.0, 5.0
REPLACED_WITHIN_S = 10.0
"""As in `jobs.services.follow.notices`: so long the fleet waits for pods in the place of those that left."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Seconds."""

    heard: bool
    """Pods get notice, and save before they leave."""
    elastic: bool
    restart_s: float
    """From its place to the first step, of a job that was stopped."""
    rejoin_s: float = 0.0
    """From a change of its workers to the next step."""
    detect_s: float = 0.0
    """Until a failure without notice is known."""


STATIC = Policy(heard=False, elastic=False, restart_s=300, detect_s=60)
SUSPEND = Policy(heard=True, elastic=False, restart_s=180)
ELASTIC = Policy(heard=True, elastic=True, restart_s=180, rejoin_s=60)


@dataclass
class Training:
    """Worker seconds that are saved, of workers that run from ``begins`` on."""

    done: float = 0.0
    workers: int = 0
    begins: float = 0.0

    def stop(self, at: float, *, saves: bool) -> None:
        periods, rest = divmod(max(at - self.begins, 0.0), CHECKPOINT_S + BLOCK_S)
        self.done += self.workers * (periods * CHECKPOINT_S + (min(rest, CHECKPOINT_S) if saves else 0.0))
        self.workers = 0

    def go(self, workers: int, begins: float) -> None:
        self.workers, self.begins = workers, begins


@dataclass
class Month:
    pool: Pool
    policy: Policy
    least: int
    asks: bool = True
    """After a reclaim it asks for the size before, which it gets in parts; False: it grows by itself alone."""
    now: float = 0.0
    size: int = 0
    attempt: int = 0
    pods: dict[int, str] = field(default_factory=dict)
    """Index -> node, of the pods of the running job."""
    running: bool = False
    asked_for: int = 0
    """The size before the first reclaim since it had that, which it has as soon as there is room for all of it."""
    restarts: int = 0
    available: float = 0.0
    """Node seconds."""

    def __post_init__(self) -> None:
        self.size, self.training = self.pool.nodes, Training()
        total = {GPU: EACH * self.pool.nodes}
        ledger = Ledger(tree(total, quota("vision", total, total)))
        self.scheduler = Scheduler(Quota(ledger, 1), PlacementCache())
        self.places = self.scheduler.places
        self.places.set_cluster(1, Member(CLUSTER, apis=APIS))
        self.up = set(self.pool.names)
        for name in self.pool.names:
            self.places.set_node(CLUSTER, NodeFacts(name, {GPU: EACH}))
        self._coming: list[tuple[float, int, int, Callable[[], None]]] = []
        self._order = count()
        self._looks: set[float] = set()
        """When the fleet looks again."""
        self.placed_at = self.changed_at = self.asked_at = 0.0

    def run(self, changes: Iterable[Change], until: float) -> "Month":
        self._wait()
        for change in changes:
            self._pass(change.at)
            self._at(change)
        self._pass(until)
        self.training.stop(until, saves=True)
        return self

    @property
    def goodput(self) -> float:
        """Of what was asked for, all the time."""
        return self.training.done / (self.pool.nodes * self.now)

    @property
    def of_available(self) -> float:
        return self.training.done / self.available

    # the clock

    def _pass(self, until: float) -> None:
        while self._coming and self._coming[0][0] <= until:
            at, _, attempt, action = heapq.heappop(self._coming)
            self._move(at)
            if attempt == self.attempt:
                action()
        self._move(until)

    def _move(self, at: float) -> None:
        self.available += len(self.up) * (at - self.now)
        self.now = at

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        """Unless the attempt has ended then."""
        heapq.heappush(self._coming, (self.now + seconds, next(self._order), self.attempt, action))

    # the pool

    def _at(self, change: Change) -> None:
        for name in change.back:
            self.up.add(name)
            self.places.set_node(CLUSTER, NodeFacts(name, {GPU: EACH}))
        lost = [index for index, node in self.pods.items() if node in change.gone]
        if lost and self.running:
            self._reclaim(lost)
        for name in change.gone:
            self.up.discard(name)
            self.places.drop_node(CLUSTER, name)
        self._cycle()

    def _reclaim(self, lost: list[int]) -> None:
        if not self.policy.heard:
            self.training.stop(self.now, saves=False)
            self._hold([node for index, node in self.pods.items() if index not in lost])
            self.running = False
            self._later(self.policy.detect_s, self._leave)
            return
        self.training.stop(self.now, saves=True)
        if self._asked_to_leave(lost) == set(lost):
            for index in lost:
                del self.pods[index]
            self._hold(self.pods.values())
            self._train(BLOCK_S + self.policy.rejoin_s)
            self._later(BLOCK_S + REPLACED_WITHIN_S, self._follow_reclaim)
        else:
            self.running = False
            self._hold([node for index, node in self.pods.items() if index not in lost])
            self._later(BLOCK_S, self._leave)

    def _asked_to_leave(self, lost: list[int]) -> set[int]:
        """By the supervisor of the cluster."""
        pods = [_pod(index, node) for index, node in self.pods.items()]
        signals = {str(index): Signal("aws-spot", self.pods[index]) for index in lost}
        least = {ROLE: self.least} if self.policy.elastic else {}
        actions = planning.plan(planning.JobView(pods, signals, least), self.now, {})
        gives = [action for action in actions if isinstance(action, planning.Give)]
        assert {give.notice.scope for give in gives} <= {Scope.PODS, Scope.JOB}
        return {int(give.pod.uid) for give in gives}

    def _follow_reclaim(self) -> None:
        """The fleet makes the job as small as what is left of it."""
        before, bound = {ROLE: self.size}, {ROLE: set(self.pods)}
        fewer = after_reclaim.smaller(before, bound, ends_last=False, ends_any=False)
        if not fewer:
            return
        self.asked_for, self.asked_at = max(self.asked_for, self.size) if self.asks else 0, self.now
        self._resized(fewer[ROLE])
        self.pods = dict(enumerate(self.pods.values()))
        self._cycle()

    def _resized(self, size: int) -> None:
        self.size, self.changed_at = size, self.now
        total = amounts.of_job({GPU: EACH * size})
        self.scheduler.charge(JOB, Charge(LEAF, total))
        self._later(pace.COOL_DOWN * self._restart_cost.total_seconds(), self._cycle)

    def _leave(self) -> None:
        """All pods have left: the job waits at the size it has."""
        self.places.release(self._key)
        self.scheduler.release(JOB)
        self.pods = {}
        self.scheduler.invalidate_all()  # as when the scheduler's cache is loaded anew, every five minutes
        self._wait()

    def _train(self, after_s: float) -> None:
        self.training.go(len(self.pods), self.now + after_s)
        self.restarts += 1

    # the fleet

    @property
    def _key(self) -> tuple[str, int]:
        return "job", self.attempt

    @property
    def _clock(self) -> datetime:
        return datetime.fromtimestamp(self.now, UTC)

    def _gang(self, pods: int, attempt: int) -> Gang:
        roles, total = ((ROLE, pods, {GPU: EACH}),), {GPU: EACH * pods}
        about = {"uid": "job", "leaf": LEAF, "policy": PolicySpec(), "queued_at": datetime.fromtimestamp(0, UTC)}
        return gang(job_id=JOB, roles=roles, total=total, attempt=attempt, queued=True, **about)

    def _wait(self) -> None:
        self.running = False
        self.scheduler.put(self._gang(self.size, self.attempt))
        self._cycle()

    def _cycle(self) -> None:
        """As `jobs.services.scheduling.loop`: what waits is placed, or starts small; else what is elastic grows."""
        if self.running and not self.policy.elastic:
            return
        plan = self.scheduler.run(self._clock)
        for placed in plan.placed:
            self._start([name for _, names in placed.placement.hold(self._key).nodes for name in names])
        if not self.policy.elastic or plan.placed or plan.more:
            return
        if JOB in self.scheduler.gangs:
            sizes = pace.start_sizes(self.least, self.size)
            options = [SmallStart(self._gang(size, self.attempt), {ROLE: size}) for size in sizes]
            start = find_small_start(self.scheduler, [options] if options else [], self._clock)
            if start is not None:
                self.size = start.sizes[ROLE]
                self._wait()
        elif self.running and not self._is_behind:
            self._grow()

    @property
    def _is_behind(self) -> bool:
        """Whether pods of the size in force are missing still."""
        return len(self.pods) != self.size

    def _start(self, nodes: list[str]) -> None:
        self.attempt += 1
        self.placed_at = self.now
        self.changed_at = self.now + self.policy.rejoin_s
        self.pods, self.running, self.asked_for = dict(enumerate(nodes)), True, 0
        self._train(self.policy.restart_s)
        self._later(self.policy.rejoin_s + pace.COOL_DOWN * self._restart_cost.total_seconds(), self._cycle)

    @property
    def _restart_cost(self) -> timedelta:
        """Its pods run ``rejoin_s`` after they were placed."""
        placed = datetime.fromtimestamp(self.placed_at, UTC)
        return pace.restart_cost(placed, placed + timedelta(seconds=self.policy.rejoin_s))

    def _grow(self) -> None:
        if self.asked_for > self.size:
            parts = [self._growth(size) for size in self._rested(pace.steps(self.size, self.asked_for)[1:])]
            whole = replace(self._growth(self.asked_for), parts=tuple(parts))
            self._take(plan_growth(self.scheduler, [whole], self._clock))
            return
        options = tuple(self._growth(size) for size in self._rested(pace.steps(self.size, self.pool.nodes)))
        self._take(plan_growth(self.scheduler, [], self._clock, [Spare(options)] if options else []))

    def _rested(self, sizes: list[int]) -> list[int]:
        """Those for which the job has run long enough; the fleet looks again when the next one is."""
        changed, asked = (datetime.fromtimestamp(at, UTC) for at in (self.changed_at, self.asked_at))
        if pace.restarts_anyway(asked, changed, self._restart_cost, self._clock):
            return sizes
        times = {size: pace.grows_from(changed, self._restart_cost, self.size, size) for size in sizes}
        later = [at.timestamp() for at in times.values() if at > self._clock]
        if later and min(later) not in self._looks:
            self._looks.add(min(later))
            self._later(min(later) - self.now, self._cycle)
        return [size for size, at in times.items() if at <= self._clock]

    def _take(self, plan: GrowthPlan) -> None:
        for grown in plan.grown:
            self.training.stop(self.now, saves=True)
            self.pods = dict(enumerate(name for _, names in grown.hold.nodes for name in names))
            self._resized(grown.growth.sizes[ROLE])
            self._train(self.policy.rejoin_s)

    def _growth(self, size: int) -> Growth:
        added = replace(self._gang(size - self.size, 0), charged=False)
        return Growth(added, CLUSTER, {ROLE: size}, {GPU: EACH * size}, self._key)

    def _hold(self, nodes: Iterable[str]) -> None:
        names = tuple(nodes)
        self.places.hold(CapacityHold(self._key, CLUSTER, {GPU: EACH * len(names)}, (({GPU: EACH}, names),)))


def _pod(index: int, node: str) -> PodFacts:
    return PodFacts(
        "vision", f"llama-worker-{index}", str(index), "1", JOB_NAME, None, ROLE, node, "10.0.0.1", "Running",
        leaving=False, ended=False, restarts=0, how=How.KUBEAI, signal=None, notice=None, heard=None, step=None,
    )  # fmt: skip


JOB_NAME = "llama"
