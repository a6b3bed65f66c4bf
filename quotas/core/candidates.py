"""The running jobs that reclaim may choose from, as arrays: read once for all searches of a cycle.

They stand in the order in which they are evicted where nothing else decides. `quotas.core.reclaim` chooses which of them, and
how many, a preemptor may take.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from operator import attrgetter

import numpy as np

from quotas.core.amounts import COUNTS
from quotas.core.ledger import Charge, Ledger

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

    @property
    def leaf(self) -> str:
        return self.charge.leaf

    @property
    def lost_gpu_hours(self) -> float:
        gpus = sum(amount for name, amount in self.charge.amounts.items() if name.endswith("/gpu"))
        return gpus * self.lost_s / 3600

    @cached_property
    def cheap_first(self) -> tuple[int, bool, bool, float, str]:
        """Lowest priority, then elastic, checkpointed, most recently started."""
        return self.priority, not self.elastic, not self.checkpointed, -self.started_at.timestamp(), self.key

    @cached_property
    def shape(self) -> Shape:
        return tuple(self.charge.amounts.items())


class Candidates:
    """Jobs that may be preempted, by their position here."""

    def __init__(self, ledger: Ledger, running: Iterable[Running]) -> None:
        self.jobs = sorted([job for job in running if job.charge.preemptible], key=attrgetter("cheap_first"))
        numbers: dict[Shape, int] = {}
        shapes = [numbers.setdefault(job.shape, len(numbers)) for job in self.jobs]
        vectors = [ledger.vector(dict(shape)) for shape in numbers] or [ledger.vector({})]
        self.sizes = np.array(vectors)[shapes]  # [job, resource]
        self.leaf = np.array([ledger.row[job.charge.leaf] for job in self.jobs], dtype=np.int64)
        self.priority = np.array([job.priority for job in self.jobs], dtype=np.int64)
        self.started = np.array([job.started for job in self.jobs], dtype=np.bool_)
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

    def take(self, key: str) -> None:
        """Remove the job: no later search chooses it again."""
        self.stays[self.position[key]] = False
