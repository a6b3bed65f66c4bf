"""What every search for jobs to stop works with: the preemptor's request and path, the candidates, and the ledger they leave.

The ledger is changed as targets are chosen and kept again; the caller restores it. Which jobs a preemptor has a right to is
not known here, but in `quotas.core.reclaiming.reclaim` and `quotas.core.reclaiming.borrowers`.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quotas.core.accounts import unstated
from quotas.core.accounts.ledger import Ledger
from quotas.core.queues import admission
from quotas.core.queues.order import Unit
from quotas.core.reclaiming.candidates import Candidates
from quotas.core.reclaiming.victims import Cause, Reclaim, Target, Victim
from quotas.core.trees.amounts import COUNTS

OVERSIZE = 4
"""So many times as large as what is needed a gang is too large to be stopped for it, where others would do."""
Columns = NDArray[np.bool_]  # [resource]
CanPlace = Callable[[frozenset[str]], bool]
"""Whether the preemptor would find a place if the jobs with these keys were gone. Monotonic: more gone never makes it False."""

Propose = Callable[[Mapping[str, float]], frozenset[str]]
"""Some of these jobs, each with its price, without which the preemptor may find a place; empty: none are known."""


def propose_none(prices: Mapping[str, float]) -> frozenset[str]:  # noqa: ARG001
    return frozenset()


class Targeting:
    """One search for a preemptor. Releases the charges of chosen jobs from the ledger as it goes."""

    candidates: Candidates

    def __init__(self, ledger: Ledger, preemptor: Unit, can_place: CanPlace) -> None:
        self.ledger, self.preemptor, self.can_place = ledger, preemptor, can_place
        self.path_rows = ledger.path_rows[preemptor.leaf]
        self.asked = ledger.vector(preemptor.charge.amounts)
        self.level_of = {row: level for level, row in enumerate(self.path_rows.tolist())}
        self.consumed = np.array([name not in COUNTS for name in ledger.resources]) & (self.asked > 0)
        self.wanted = ledger.flavored & (self.asked > 0)
        self.gone: set[int] = set()
        """Positions of the candidates that are chosen."""

    def look_at(self, candidates: Candidates) -> None:
        self.candidates = candidates
        self.foreign = candidates.foreign_to(self.wanted, self.ledger.flavored)

    def find_short(self) -> Columns:  # [level, resource]
        return admission.find_short(self.ledger, self.asked, self.path_rows)

    def parting(self, rows: list[int]) -> int:
        """How many of these rows, a path from a leaf up, are below the lowest common ancestor."""
        return next(i for i, row in enumerate(rows) if row in self.level_of)

    def choose(self, target: Target) -> Target:
        self.gone.update(target.positions)
        for charge in target.charges:
            self.ledger.release(charge)
        return target

    def keep(self, target: Target) -> None:
        self.gone.difference_update(target.positions)
        for charge in target.charges:
            self.ledger.charge(charge)

    def going_with(self, position: int) -> list[int]:
        """The candidate, and the pods that it could have given back and that go with it."""
        known = self.candidates
        return [
            position,
            *(part for part in known.parts.get(position, ()) if known.stays[part] and part not in self.gone),
        ]

    def above_min(self, position: int, rows: list[int], covered: Columns) -> Columns:
        """The resources of which each of these nodes claims more than its min, with what its idle children keep back."""
        ledger, size = self.ledger, self.candidates.sizes[position]
        claims = np.asarray(ledger.held.claims[rows] > ledger.min[rows])
        above = np.asarray(unstated.narrow(ledger, claims, covered, size, rows).all(axis=0))
        if not ledger.has_flavors:
            return above
        counts = ~ledger.flavored | self.wanted if self.wanted.any() else np.ones_like(above)
        asked = ((size > 0) & counts).nonzero()[0].tolist()
        decides = [ledger.deciding(column, asked) for column in range(len(above))]
        return np.array([any(above[each] for each in columns) for columns in decides])

    def target(self, going: list[int], cause: Cause, row: int, column: int, **facts: Any) -> Target:
        """``facts``: further fields of the victim, and the ``needs`` of the target."""
        job = self.candidates.jobs[going[0]]
        path, resource = self.ledger.tree.nodes[row].path, self.ledger.resources[column]
        over = int(self.ledger.held.claims[row, column] - self.ledger.min[row, column])
        above = over if cause is Cause.ABOVE_MIN else 0
        until = job.protected_until if cause is Cause.ABOVE_MIN else None
        needs = facts.pop("needs", ())
        victim = Victim(job.key, job.leaf, cause, path, resource, above, job.lost_gpu_hours, until, **facts)
        return Target(tuple(going), job, victim, needs, tuple(self.candidates.jobs[each].charge for each in going))


def as_reclaim(ledger: Ledger, preemptor: Unit, taken: list[Target]) -> Reclaim:
    charges = [charge for target in taken for charge in target.charges]
    freed = {name: sum(charge.amounts.get(name, 0) for charge in charges) for name in ledger.resources}
    return Reclaim(preemptor.id, tuple(target.victim for target in taken), {k: v for k, v in freed.items() if v})
