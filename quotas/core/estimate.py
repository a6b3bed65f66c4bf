"""Estimates when a waiting job may start, from the run times of finished jobs of its queue, and names the basis of each
estimate.

A forecast of the quota alone: running jobs end after the median run time of their queue (or of the nearest node above with
enough samples), and jobs that wait at a full node start by place as soon as it has room. Clusters, later submissions, reclaim
and declared run times are not considered. There is no estimate for a job that has run longer than all finished ones, nor for
jobs that wait for it.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from heapq import heappop, heappush
from itertools import count

from quotas.core.accounts.ledger import Charge, Ledger
from quotas.core.queues import admission
from quotas.core.queues.order import Place, Unit
from quotas.core.reclaiming.candidates import Running
from quotas.core.trees.tree import QueuePolicy

ENOUGH = 3
"""Minimum number of finished jobs for a median."""


@dataclass(frozen=True, slots=True)
class Basis:
    path: str
    """The node whose finished jobs were used: the queue's own, or one above it."""
    jobs: int
    """How many: those that ran longer than the job has run already."""

    @property
    def message(self) -> str:
        return f"median of {self.jobs} finished jobs of {self.path}"


@dataclass(frozen=True, slots=True)
class Estimate:
    starts_at: datetime
    basis: Basis | None
    """Basis of the run whose end frees the quota; None when the quota has room already."""

    @property
    def message(self) -> str:
        return self.basis.message if self.basis else "the quota has room now; the clusters decide"


class RunTimes:
    """Run times of finished jobs in seconds, by leaf and, merged, by every node above."""

    def __init__(self, ledger: Ledger, seconds: Mapping[str, Sequence[float]]) -> None:
        self._of: dict[str, list[float]] = defaultdict(list)
        nodes, known = ledger.tree.nodes, ledger.path_rows
        for leaf, run_times in seconds.items():
            for row in known[leaf].tolist() if leaf in known else ():
                self._of[nodes[row].path] += run_times
        for samples in self._of.values():
            samples.sort()
        self._ways = {path: [nodes[row].path for row in path_rows.tolist()] for path, path_rows in known.items()}

    def remaining(self, leaf: str, elapsed_s: float) -> tuple[float, Basis] | None:
        """Estimated remaining run time of a job of this leaf that has run ``elapsed_s``; None without a basis."""
        for path in self._ways[leaf]:
            samples = self._of.get(path, ())
            longer = len(samples) - (first := bisect_right(samples, elapsed_s))
            if longer >= ENOUGH:
                return samples[first + longer // 2] - elapsed_s, Basis(path, longer)
        return None


def estimate_starts(
    ledger: Ledger, running: Iterable[Running], waiting: Iterable[Unit], ran: RunTimes, now: datetime
) -> dict[str, Estimate | None]:
    """Estimates by id of each waiting unit; None where there is no basis. Leaves the ledger as it was."""
    with ledger.released([]):
        forecast = _Forecast(ledger, ran, now)
        for job in running:
            forecast.add_running(job.charge, job.started_at.timestamp(), now.timestamp())
        for unit in sorted(waiting, key=lambda unit: unit.place):
            forecast.add_waiting(unit, now.timestamp(), None)
        forecast.play_ends()
    return forecast.estimates


class _Forecast:
    def __init__(self, ledger: Ledger, ran: RunTimes, now: datetime) -> None:
        self.estimates: dict[str, Estimate | None] = {}
        self._ledger = ledger
        self._ran = ran
        self._now = now
        self._ends: list[tuple[float, int, Charge, Basis]] = []
        self._serial = count()
        self._at: dict[str, list[tuple[Place, Unit]]] = defaultdict(list)
        """Units by the path of the full node at which they wait."""
        self._may_fit: set[str] = set()
        """Units that were refused and are known to fit where nothing else runs."""
        self._behind: dict[str, list[Unit]] = {}
        """Units behind the waiting head of each blocked queue."""

    def add_running(self, charge: Charge, since_s: float, now_s: float) -> None:
        left = self._ran.remaining(charge.leaf, max(now_s - since_s, 0.0))
        if left is not None:
            heappush(self._ends, (now_s + left[0], next(self._serial), charge, left[1]))

    def add_waiting(self, unit: Unit, at_s: float, basis: Basis | None) -> None:
        """Start the unit if it fits and its queue is not blocked."""
        if unit.leaf in self._behind:
            self.estimates[unit.id] = None
            self._behind[unit.leaf].append(unit)
        else:
            self.try_start(unit, at_s, basis)

    def try_start(self, unit: Unit, at_s: float, basis: Basis | None) -> str:
        """Start the unit and return "", or enqueue it at the full node and return that node's path."""
        charge = unit.charge
        full = admission.find_full_node(self._ledger, charge)
        if full is None:
            self._ledger.charge(charge)
            starts_at = datetime.fromtimestamp(at_s, UTC) if basis else self._now
            self.estimates[unit.id] = Estimate(starts_at, basis)
            self.add_running(charge, at_s, at_s)
            for follower in self._behind.pop(charge.leaf, ()):
                self.add_waiting(follower, at_s, basis)
            return ""
        self.estimates[unit.id] = None
        if self._ledger.tree.by_path[charge.leaf].attributes.queue_policy is QueuePolicy.BLOCK:
            self._behind.setdefault(charge.leaf, [])
        if unit.id not in self._may_fit:
            if admission.find_never_fitting(self._ledger, charge):
                return ""
            self._may_fit.add(unit.id)
        heappush(self._at[full], (unit.place, unit))
        return full

    def play_ends(self) -> None:
        """Let running jobs end in order of time, and start what each end makes room for."""
        while self._ends:
            at_s, _, charge, basis = heappop(self._ends)
            self._ledger.release(charge)
            for row in self._ledger.path_rows[charge.leaf].tolist():
                self._start_waiting(self._ledger.tree.nodes[row].path, at_s, basis)

    def _start_waiting(self, path: str, at_s: float, basis: Basis) -> None:
        """Start by place the units that wait at this node, until one finds it full again."""
        queue = self._at.get(path)
        while queue:
            if self.try_start(heappop(queue)[1], at_s, basis) == path:
                return
