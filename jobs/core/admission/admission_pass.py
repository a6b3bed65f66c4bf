"""The quota's part of a cycle: which gang is offered next, whether the quota admits it, and its refusal as a verdict.

Jobs of a leaf come in the order of `quotas.core.queues.fair_share`, jobs under no quota by priority, time and name;
of the two heads the one with the smaller place goes first. Clusters are not known here.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from jobs.core.gang.types import Gang
from jobs.core.reasons import Code, QuotaVerdict
from quotas.core.accounts.ledger import Charge, Ledger
from quotas.core.accounts.queue_use import QueueUse
from quotas.core.queues import admission
from quotas.core.queues.admission import BeforeWindow, Refused
from quotas.core.queues.fair_share import Behind, FairShareIterator
from quotas.core.queues.order import Unit


def unit_of(gang: Gang) -> Unit:
    stopped_for = str(gang.stopped_for) if gang.stopped_for else ""
    facts = (gang.charge, gang.priority, gang.queued_at, gang.user, gang.has_claimed, stopped_for)
    return Unit(str(gang.job_id), gang.name, *facts)


def check_quota(ledger: Ledger, unit: Unit) -> Refused | None:
    """The quota's refusal of ``unit``; None when it admits it."""
    charge = unit.charge
    answer = admission.check_admission(ledger, charge.leaf, charge.amounts, preemptible=charge.preemptible)
    return answer if isinstance(answer, Refused) else None


def max_candidates(ledger: Ledger | None, gang: Gang, most: int) -> int:
    """How many gangs alike to offer: one more than the quota may have room for, at most ``most``."""
    if ledger is None or not gang.asks_quota:
        return most
    return min(admission.max_admissible(ledger, gang.charge.leaf, gang.charge.amounts) + 1, most)


def may_preempt(ledger: Ledger, gang: Gang, refusal: Refused, *, within_min_only: bool) -> bool:
    """Whether a refused gang may be entitled to preempt; no search is made for one that is not.

    ``within_min_only``: no eviction is under way that changes which gangs are within min, and its queue does not preempt by
    priority; then only a gang within some min below the refusing node is entitled.
    """
    if refusal.code is admission.Code.NEVER_FITS or refusal.bound is not admission.Bound.MAX:
        return False
    return not within_min_only or admission.promised_below(ledger, gang.charge, refusal)


class AdmissionPass:
    """One pass over the offered jobs; charges the ledger as it admits. Every `next` is answered by one of the reports below."""

    def __init__(
        self, ledger: Ledger | None, asking: Iterable[Unit], free: Iterable[Unit], use: QueueUse | None = None
    ) -> None:
        self._ledger = ledger
        self._free = iter(sorted(free, key=lambda unit: unit.place))
        self._passed: set[str] = set()
        """Ids of jobs under no quota for which no cluster has room."""
        self._iterator = FairShareIterator(ledger, asking, use) if ledger else None
        self._first = self._next_free()
        self._queued: Unit | None = None
        """The job on offer, when it is one under quota."""

    def next(self) -> Unit | None:
        """The job to offer next; the same one until its outcome is reported."""
        queued = self._iterator.next() if self._iterator else None
        before = queued is not None and (self._first is None or queued.place < self._first.place)
        self._queued = queued if before else None
        return self._queued or self._first

    def admitted(self, charge: Charge) -> None:
        """Report: the job on offer is placed; charges its leaf."""
        if self._iterator and self._ledger and self._queued:
            self._ledger.charge(charge)
            self._iterator.admitted(self._queued)
        else:
            self._first = self._next_free()

    def refused(self, answer: Refused) -> None:
        """Report: the quota refuses the job on offer, and with it all that ask the same."""
        if self._iterator and self._queued:
            self._iterator.refused(self._queued, answer)

    def passed(self, alike: Iterable[int] = ()) -> None:
        """Report: the quota admits the job on offer, but no cluster has room. Nor has one for the jobs in ``alike``."""
        if self._iterator and self._queued:
            self._iterator.passed(self._queued, map(str, alike))
            return
        self._passed.update(map(str, alike))
        self._first = self._next_free()

    def _next_free(self) -> Unit | None:
        return next((unit for unit in self._free if unit.id not in self._passed), None)

    def refusals(self) -> Iterator[tuple[int, Refused]]:
        """All jobs that the quota refused in this pass."""
        for unit, answer in self._iterator.waits if self._iterator else ():
            if isinstance(answer, Refused):
                yield int(unit.id), answer


def verdict_of(answer: Refused | Behind) -> QuotaVerdict:
    """The quota's refusal as reasons show it, with its numbers."""
    if isinstance(answer, Behind):
        facts: dict[str, Any] = {"position": answer.position, "blocker": answer.blocker}
    else:
        facts = {
            "resource": answer.resource,
            "asked": answer.asked,
            "used": answer.used,
            "kept": answer.kept,
            answer.bound.value: answer.limit,
            "bound": answer.bound.value,
            "entitled": bool(answer.entitled),
        }
        if isinstance(answer, BeforeWindow):
            facts |= {
                name: at.isoformat() if at else None
                for name, at in (("begin", answer.begin), ("until", answer.end), ("ends", answer.ends))
            } | {"window": answer.window}
    return QuotaVerdict(Code(answer.code), answer.path, answer.message, facts)
