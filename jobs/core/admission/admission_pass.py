"""The quota as the cycle meets it: who is next, whether the quota lets it run, and what each answer is called.

Jobs of a leaf come in the order of `quotas.core.fair_share`, those under no quota by priority, time and name; of the two heads
the one that would be first in a common line goes first. Which cluster anybody runs on is not known here.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from jobs.core.gang.types import Gang
from jobs.core.reasons import Code, QuotaVerdict
from quotas.core import admission
from quotas.core.admission import Refused
from quotas.core.fair_share import Behind, FairShareIterator
from quotas.core.ledger import Ledger
from quotas.core.order import Unit


def unit_of(gang: Gang) -> Unit:
    return Unit(str(gang.job_id), gang.name, gang.charge, gang.priority, gang.queued_at)


def ask(ledger: Ledger, unit: Unit) -> Refused | None:
    """The quota's no; None when it has nothing against it."""
    charge = unit.charge
    answer = admission.ask(ledger, charge.leaf, charge.amounts, preemptible=charge.preemptible)
    return answer if isinstance(answer, Refused) else None


def max_candidates(ledger: Ledger | None, gang: Gang, most: int) -> int:
    """Of those like it, one more than the quota may have room for, but no more than ``most``."""
    if ledger is None or not gang.asks_quota:
        return most
    return min(admission.most(ledger, gang.charge.leaf, gang.charge.amounts) + 1, most)


def may_preempt(ledger: Ledger, gang: Gang, no: Refused, *, by_promise: bool) -> bool:
    """Whether one who is refused might have a right to what others have.

    ``by_promise``: nobody leaves whose going changes what is promised to whom, and its queue preempts nobody by priority.
    """
    if no.code is admission.Code.NEVER_FITS or no.bound is not admission.Bound.MAX:
        return False
    return not by_promise or admission.promised_below(ledger, gang.charge, no)


class AdmissionPass:
    """One pass over everybody who may be looked at; charges the ledger as it admits."""

    def __init__(self, ledger: Ledger | None, asking: Iterable[Unit], free: Iterable[Unit]) -> None:
        self._ledger = ledger
        self._free = iter(sorted(free, key=lambda unit: unit.place))
        self._turns = FairShareIterator(ledger, asking) if ledger else None
        self._first = next(self._free, None)
        self._queued: Unit | None = None
        """Who is on offer, when it is one who asks the quota."""

    def next(self) -> Unit | None:
        """Who is next. What becomes of it is reported before the next one is asked for."""
        queued = self._turns.next() if self._turns else None
        before = queued is not None and (self._first is None or queued.place < self._first.place)
        self._queued = queued if before else None
        return self._queued or self._first

    def ask(self) -> Refused | None:
        """The quota's no to who is on offer."""
        return ask(self._ledger, self._queued) if self._queued and self._ledger else None

    def admitted(self) -> None:
        """It has its place, and its leaf is charged."""
        if self._turns and self._ledger and self._queued:
            self._ledger.charge(self._queued.charge)
            self._turns.admitted(self._queued)
        else:
            self._first = next(self._free, None)

    def refused(self, answer: Refused) -> None:
        """The quota said no: to all who ask the same, too."""
        if self._turns and self._queued:
            self._turns.refused(self._queued, answer)

    def passed(self) -> None:
        """The quota would have it, but no cluster has room."""
        if self._turns and self._queued:
            self._turns.passed(self._queued)
        else:
            self._first = next(self._free, None)

    def refusals(self) -> Iterator[tuple[int, Refused]]:
        """Everybody whom the quota refuses."""
        for unit, answer in self._turns.waits if self._turns else ():
            if isinstance(answer, Refused):
                yield int(unit.id), answer


def verdict(answer: Refused | Behind) -> QuotaVerdict:
    """The quota's no as it is told, with its numbers."""
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
    return QuotaVerdict(Code(answer.code), answer.path, answer.message, facts)
