"""When a waiting job may start, from how long finished jobs of its queue have run; and what that guess rests on.

A forecast of the quota alone: running jobs end after the median run time of their queue (or of the nearest node above that
has seen enough), and whoever waits at a full node goes in by place as soon as it has room. It knows nothing of clusters, of
jobs yet to come, of reclaim, or of run times that jobs declare. A job that has outlived all that were ever seen is not guessed
about, nor is what waits for it.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from heapq import heappop, heappush
from itertools import count

from quotas.core import admission
from quotas.core.admission import Admitted, Code
from quotas.core.ledger import Charge, Ledger
from quotas.core.order import Place, Unit
from quotas.core.reclaim import Running
from quotas.core.tree import QueuePolicy

ENOUGH = 3
"""Finished jobs below which a median says nothing."""


@dataclass(frozen=True, slots=True)
class Basis:
    path: str
    """Whose finished jobs were looked at: the queue's own, or those of a node above it."""
    jobs: int
    """How many of them: those that ran at least as long as the one in question has already."""

    @property
    def message(self) -> str:
        return f"median of {self.jobs} finished jobs of {self.path}"


@dataclass(frozen=True, slots=True)
class Estimate:
    starts_at: datetime
    basis: Basis | None
    """Of the run whose end makes the room; None when the quota has room already."""

    @property
    def message(self) -> str:
        return self.basis.message if self.basis else "the quota has room now; the clusters decide"


class RunTimes:
    """How long finished jobs ran, leaf by leaf in seconds, and added up above."""

    def __init__(self, ledger: Ledger, seconds: Mapping[str, Sequence[float]]) -> None:
        self._of: dict[str, list[float]] = defaultdict(list)
        nodes, known = ledger.tree.nodes, ledger.way
        for leaf, found in seconds.items():
            for row in known[leaf].tolist() if leaf in known else ():
                self._of[nodes[row].path] += found
        for samples in self._of.values():
            samples.sort()
        self._ways = {path: [nodes[row].path for row in way.tolist()] for path, way in known.items()}

    def left(self, leaf: str, elapsed_s: float) -> tuple[float, Basis] | None:
        """How much longer a job of this leaf runs after so long."""
        for path in self._ways[leaf]:
            samples = self._of.get(path, ())
            longer = len(samples) - (first := bisect_right(samples, elapsed_s))
            if longer >= ENOUGH:
                return samples[first + longer // 2] - elapsed_s, Basis(path, longer)
        return None


def starts(
    ledger: Ledger, running: Iterable[Running], waiting: Iterable[Unit], ran: RunTimes, now: datetime
) -> dict[str, Estimate | None]:
    """By id of each waiting unit; None where there is nothing to go by. Leaves the ledger as it was."""
    with ledger.released([]):
        forecast = _Forecast(ledger, ran, now)
        for job in running:
            forecast.runs(job.charge, job.started_at.timestamp(), now.timestamp())
        for unit in sorted(waiting, key=lambda unit: unit.place):
            forecast.comes(unit, now.timestamp(), None)
        forecast.plays()
    return forecast.found


class _Forecast:
    def __init__(self, ledger: Ledger, ran: RunTimes, now: datetime) -> None:
        self.found: dict[str, Estimate | None] = {}
        self._ledger = ledger
        self._ran = ran
        self._now = now
        self._ends: list[tuple[float, int, Charge, Basis]] = []
        self._serial = count()
        self._at: dict[str, list[tuple[Place, Unit]]] = defaultdict(list)
        """Who waits at which full node."""
        self._behind: dict[str, list[Unit]] = {}
        """Of each queue that is held up, who stands behind the one that waits."""

    def runs(self, charge: Charge, since_s: float, now_s: float) -> None:
        left = self._ran.left(charge.leaf, max(now_s - since_s, 0.0))
        if left is not None:
            heappush(self._ends, (now_s + left[0], next(self._serial), charge, left[1]))

    def comes(self, unit: Unit, at_s: float, basis: Basis | None) -> None:
        """It is its turn, unless somebody holds up its queue."""
        if unit.leaf in self._behind:
            self.found[unit.id] = None
            self._behind[unit.leaf].append(unit)
        else:
            self.tries(unit, at_s, basis)

    def tries(self, unit: Unit, at_s: float, basis: Basis | None) -> str:
        """Starts it, or lets it wait at the node that is full: its path."""
        charge = unit.charge
        answer = admission.ask(self._ledger, charge.leaf, charge.amounts, preemptible=charge.preemptible)
        if isinstance(answer, Admitted):
            self._ledger.charge(charge)
            starts_at = datetime.fromtimestamp(at_s, UTC) if basis else self._now
            self.found[unit.id] = Estimate(starts_at, basis)
            self.runs(charge, at_s, at_s)
            for each in self._behind.pop(charge.leaf, ()):
                self.comes(each, at_s, basis)
            return ""
        self.found[unit.id] = None
        if self._ledger.tree.by_path[charge.leaf].attributes.queue_policy is QueuePolicy.BLOCK:
            self._behind.setdefault(charge.leaf, [])
        if answer.code is Code.NEVER_FITS:
            return ""
        heappush(self._at[answer.path], (unit.place, unit))
        return answer.path

    def plays(self) -> None:
        while self._ends:
            at_s, _, charge, basis = heappop(self._ends)
            self._ledger.release(charge)
            for row in self._ledger.way[charge.leaf].tolist():
                self._wakes(self._ledger.tree.nodes[row].path, at_s, basis)

    def _wakes(self, path: str, at_s: float, basis: Basis) -> None:
        """Lets in by place who waits at this node, until one finds it full again."""
        queue = self._at.get(path)
        while queue:
            if self.tries(heappop(queue)[1], at_s, basis) == path:
                return
