"""The running jobs that reclaim may choose from, as arrays: read once for all searches of a cycle.

They stand in the order in which they are evicted where nothing else decides. `quotas.core.reclaiming.reclaim` chooses which
of them, and how many, a preemptor may take.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from fleet.core import devices
from quotas.core.accounts.ledger import Charge, Ledger
from quotas.core.trees.amounts import COUNTS, Amounts
from quotas.core.trees.tree import Tree

Shape = tuple[tuple[str, int], ...]
RESTART_S = 600.0
"""What each GPU of a stopped gang loses beside the work: until all pods are placed, have their image and their checkpoint."""


@dataclass(frozen=True)
class Running:
    """A job the ledger is charged with. One that is on its way out already belongs in neither."""

    key: str
    charge: Charge
    priority: int
    started_at: datetime
    elastic: bool = False
    checkpointed: bool = False
    started: bool = True
    """False: this very cycle placed it and nothing is written yet, so that nothing at all is lost when it does not start."""
    lost_s: float = 0.0
    """Seconds of work that are lost when it is stopped: since its start, or since it last saved."""
    protected_until: datetime | None = None
    """When it may first be evicted for the promise of another queue; None: now."""
    surplus: tuple[tuple[str, Amounts], ...] = ()
    """(role, one pod's amounts) of each pod that it can give back while it runs on with the others."""
    part_of: str = ""
    """Key of the job of which this is one pod that it can give back; empty: it is a job."""
    choices: tuple[Charge, ...] = ()
    """What it may be charged when it starts again (`quotas.core.queues.order.Unit`)."""

    @property
    def leaf(self) -> str:
        return self.charge.leaf

    @property
    def lost_gpu_hours(self) -> float:
        return devices.count(self.charge.amounts) * self.lost_s / 3600

    @cached_property
    def cheap_first(self) -> tuple[int, bool, bool, float, str]:
        """Lowest priority, then elastic, checkpointed, most recently started."""
        return self.priority, not self.elastic, not self.checkpointed, -self.started_at.timestamp(), self.key

    @cached_property
    def shape(self) -> Shape:
        return tuple(self.charge.amounts.items())


def protected_until(tree: Tree, leaf: str, admitted_at: datetime | None, now: datetime) -> datetime | None:
    """The end of a job's `min_runtime`, which begins with its admission; None when it is over, or the queue has none."""
    runtime = tree.by_path[leaf].attributes.min_runtime
    if not runtime or admitted_at is None:
        return None
    until = min(admitted_at, now) + runtime
    return until if until > now else None


def job_of(key: str) -> str:
    """The key of the job that the candidate is, or is one pod of."""
    return key.partition("#")[0]


def role_of(key: str) -> str:
    """The role of a candidate that is one pod of a job."""
    return key.split("#")[1]


def _parts(job: Running) -> Iterator[Running]:
    """The pods that the job can give back, each by itself, and what it keeps."""
    kept = dict(job.charge.amounts)
    for number, (role, amounts) in enumerate(job.surplus):
        kept = {name: amount - amounts.get(name, 0) for name, amount in kept.items()}
        key, charge = f"{job.key}#{role}#{number}", replace(job.charge, amounts=amounts)
        yield replace(job, key=key, charge=charge, protected_until=None, surplus=(), part_of=job.key)
    yield replace(job, charge=replace(job.charge, amounts=kept), surplus=()) if job.surplus else job


class Candidates:
    """Jobs that may be preempted, and single pods that jobs can give back, by their position here."""

    def __init__(self, ledger: Ledger, running: Iterable[Running]) -> None:
        self._ledger = ledger
        each = (part for job in running if job.charge.preemptible for part in _parts(job))
        self.jobs = sorted(each, key=attrgetter("cheap_first"))
        numbers: dict[Shape, int] = {}
        shapes = [numbers.setdefault(job.shape, len(numbers)) for job in self.jobs]
        vectors = [ledger.vector(dict(shape)) for shape in numbers] or [ledger.vector({})]
        self.sizes = np.array(vectors)[shapes]  # [job, resource]
        self.leaf = np.array([ledger.row[job.charge.leaf] for job in self.jobs], dtype=np.int64)
        self.priority = np.array([job.priority for job in self.jobs], dtype=np.int64)
        self.started = np.array([job.started for job in self.jobs], dtype=np.bool_)
        self.is_part = np.array([bool(job.part_of) for job in self.jobs], dtype=np.bool_)
        self.stage = np.where(self.started, np.where(self.is_part, 1, 2), 0)
        """0: nothing is lost, since it has not started; 1: a pod that its job can do without; 2: a whole job."""
        ends = [job.protected_until.timestamp() if job.protected_until else 0.0 for job in self.jobs]
        self.protected_until = np.array(ends, dtype=np.float64)
        """Seconds of the clock; 0: not protected."""
        self.some_protected = bool(self.protected_until.any())
        self.stays = np.ones(len(self.jobs), dtype=np.bool_)
        """Those that no search has taken yet."""
        consumed = [i for i, name in enumerate(ledger.resources) if name not in COUNTS]
        shares = (self.sizes[:, consumed] / np.maximum(ledger.max[0, consumed], 1)).max(axis=1, initial=0.0)
        lost = np.array([job.lost_s for job in self.jobs], dtype=np.float64) + RESTART_S
        self.cost = np.where(self.started, shares * lost, 0.0)
        """What stopping each costs: the share of the fleet it has, times the work and the time that are lost."""

    @cached_property
    def position(self) -> dict[str, int]:
        return {job.key: i for i, job in enumerate(self.jobs)}

    @cached_property
    def whole(self) -> NDArray[np.int64]:
        """Of each pod that a job can give back the position of its job; of each job its own."""
        return np.array([self.position[job.part_of or job.key] for job in self.jobs], dtype=np.int64)

    @cached_property
    def parts(self) -> dict[int, list[int]]:
        """The pods that each job can give back."""
        parts: dict[int, list[int]] = {}
        for position in self.is_part.nonzero()[0].tolist():
            parts.setdefault(int(self.whole[position]), []).append(position)
        return parts

    def without_parts(self) -> "Candidates":
        """The candidates that stay, as jobs that are stopped whole or not at all."""
        return Candidates(self._ledger, [self._joined(i) for i in (self.stays & ~self.is_part).nonzero()[0].tolist()])

    def _joined(self, position: int) -> Running:
        job, amounts = self.jobs[position], dict(self.jobs[position].charge.amounts)
        for part in self.parts.get(position, ()):
            if self.stays[part]:
                more = self.jobs[part].charge.amounts
                amounts = {name: amounts.get(name, 0) + more.get(name, 0) for name in {**amounts, **more}}
        return replace(job, charge=replace(job.charge, amounts=amounts))

    def foreign_to(self, wanted: NDArray[np.bool_], flavored: NDArray[np.bool_]) -> NDArray[np.bool_]:  # [job]
        """The jobs that have GPUs of flavors, and none of a flavor that is wanted; none where none is."""
        if not wanted.any():
            return np.zeros(len(self.jobs), dtype=np.bool_)
        return np.asarray((self.sizes[:, flavored] > 0).any(axis=1) & ~(self.sizes[:, wanted] > 0).any(axis=1))

    def take(self, key: str) -> None:
        """Remove the job, or one pod of it: no later search chooses it again."""
        position = self.position[key]
        self.stays[[position, *self.parts.get(position, ())]] = False
