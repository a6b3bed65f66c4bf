"""What becomes of one gang in a cycle: the quota's refusal, a place, or neither, in each flavor that it may use.

Only asks and remembers refusals; charges and holds are the scheduler's.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import partial
from typing import Literal

from jobs.core.admission import admission_pass
from jobs.core.admission.equivalence import EquivalenceClass
from jobs.core.admission.nominations import Nominations
from jobs.core.admission.placement_cache import PlacementCache
from jobs.core.admission.plans import Placement
from jobs.core.admission.window_guard import WindowGuard
from jobs.core.gang.types import Gang
from jobs.core.scheduling.backfill_pass import BackfillPass
from jobs.core.scheduling.flavor_choice import try_flavors
from jobs.core.scheduling.refusal_index import RefusalIndex
from jobs.core.scheduling.waiting import Waiting
from quotas.core.queues.admission import BeforeWindow, Refused
from quotas.core.queues.order import Unit


class Offering:
    def __init__(
        self, waiting: Waiting, places: PlacementCache, refusals: RefusalIndex, backfill: BackfillPass
    ) -> None:
        self._waiting, self._places, self._refusals, self._backfill = waiting, places, refusals, backfill
        self.windows = WindowGuard(None, {}, datetime.min.replace(tzinfo=UTC))
        """Of the present run."""

    def candidates(self, most: int) -> Iterator[int]:
        """Jobs of every queue to consider: of each class as many as the quota may admit, and one more to be refused."""
        for leaf in [*dict.fromkeys(group.leaf for group in self._refusals.undecided if group.leaf), ""]:
            yield from self._candidates_of(leaf, most)

    def _candidates_of(self, leaf: str, most: int) -> list[int]:
        waiting = self._waiting
        if not waiting.blocks(leaf):
            groups = [g for g in waiting.classes.by_leaf.get(leaf, {}).values() if g in self._refusals.undecided]
            ledger = waiting.quota.ledger if waiting.quota else None
            return [
                job
                for group in groups
                for _, job in group.members[: admission_pass.max_candidates(ledger, group.sample, most)]
            ]
        jobs: list[int] = []
        for _, job in waiting.classes.in_order(leaf):
            if waiting.class_of(job).refused or len(jobs) == most:
                break
            jobs.append(job)
        return jobs

    def probe(self, group: EquivalenceClass, nominations: Nominations, now: datetime, *, passes: bool) -> None:
        """Parks the class if no member could start even if it were first."""
        placement = try_flavors(self._waiting, group, partial(self._probe, group, nominations, now), passes=passes)
        if placement is None or isinstance(placement, Refused):
            self.park(group, placement)

    def offer(
        self, gang: Gang, group: EquivalenceClass, nominations: Nominations, now: datetime, *, passes: bool
    ) -> Placement | Refused | None:
        """Where the gang on offer starts, or the quota's refusal; None: no cluster has room for it."""
        return try_flavors(self._waiting, group, partial(self._offer, gang, group, nominations, now), passes=passes)

    def parks(self, group: EquivalenceClass, outcome: Placement | Refused | None) -> bool:
        """Parks the class where others that ask the same may fare better: they use other flavors, or end earlier."""
        is_own = isinstance(outcome, BeforeWindow) or (group.options and not isinstance(outcome, Placement))
        if is_own and not isinstance(outcome, Placement):
            self.park(group, outcome)
        return bool(is_own)

    def park(self, group: EquivalenceClass, answer: Refused | None) -> None:
        if group.options:
            self._refusals.refuse_all_flavors(group)
        elif answer is not None:
            self._refusals.refuse(group, answer)
        else:
            self._refusals.mark_infeasible(group)

    def _probe(
        self, group: EquivalenceClass, nominations: Nominations, now: datetime
    ) -> Literal[True] | Refused | None:
        gang = group.sample
        if (refusal := self._refusal(self._waiting.unit(group.members[0][1]), gang, nominations)) is not None:
            return refusal
        with nominations.own_reservation_lifted(gang), self._on_reserved_nodes(gang.job_id):
            return self._places.fits(group.shape, gang, group.only, now) or None

    def _offer(
        self, gang: Gang, group: EquivalenceClass, nominations: Nominations, now: datetime
    ) -> Placement | Refused | None:
        gang = group.of_flavor(gang)
        if (refusal := self._refusal(self._waiting.unit(gang.job_id), gang, nominations)) is not None:
            return refusal
        with nominations.own_reservation_lifted(gang):
            return self._find(group, gang, now)

    def _refusal(self, unit: Unit, gang: Gang, nominations: Nominations) -> Refused | None:
        if not gang.asks_quota or self._waiting.quota is None:
            return None
        if (refusal := admission_pass.check_quota(self._waiting.quota.ledger, unit)) is not None:
            return refusal
        if gang.job_id in self._waiting.nominees:  # others are evicted for it already
            return None
        return self.windows.check(gang) or nominations.check(unit, gang)

    def _find(self, group: EquivalenceClass, gang: Gang, now: datetime) -> Placement | None:
        """The best placement; on nodes reserved for a big gang only where there is no other, for a gang that may use them."""
        if group.options or not group.infeasible:
            with self._on_reserved_nodes(gang.job_id):
                placement = self._places.find_with_verdicts(group.shape, gang, group.only, now)
            if placement is not None:
                return placement
            if not group.options:
                self._refusals.mark_infeasible(group)
        return self._backfill.find(group, gang, now)

    def _on_reserved_nodes(self, job: int) -> AbstractContextManager[None]:
        """A nominee comes before the big gang that nodes are reserved for."""
        if job in self._waiting.nominees:
            return self._places.without_reservation()
        return self._places.on_own_reservation(job)
