"""Tries the flavors of a class one after the other, in the order and with the patience that its queue states.

What trying means is the caller's: to probe, to offer, or to search for preemption targets. The names `MayStopSearch` and
`TryNextFlavor` mean what they mean in Kueue. A class of a tree without flavors is tried once, as it is.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from jobs.core.admission import admission_pass
from jobs.core.admission.equivalence import EquivalenceClass
from jobs.core.gang.types import AdmittedGang
from jobs.core.scheduling.waiting import Waiting
from quotas.core.accounts.ledger import Ledger
from quotas.core.queues import admission
from quotas.core.queues.admission import Code, Refused
from quotas.core.trees.flavors import FlavorChoice

T = TypeVar("T")


def try_flavors(
    waiting: Waiting, group: EquivalenceClass, attempt: Callable[[], T | Refused | None], *, passes: bool
) -> T | Refused | None:
    """The outcome of the first flavor that is possible, at which the class is then left; else of the one it waits for.

    ``passes``: no preemption targets exist, so that it is not to stop at a flavor for them.
    """
    if not group.options or waiting.quota is None:
        return attempt()
    group.answers = {}
    preference, ledger = waiting.preference(group.leaf), waiting.quota.ledger
    borrowing = None
    for at in range(len(group.options)):
        group.at = at
        borrows = preference.when_can_borrow is FlavorChoice.NEXT and admission.borrows_gpus(
            ledger, group.sample.charge
        )
        outcome = attempt()
        if outcome is None or isinstance(outcome, Refused):
            group.answers[at] = outcome
            stops = preference.when_can_preempt is FlavorChoice.STOP and not passes
            if stops and _may_preempt(ledger, group, outcome):
                break
        elif not borrows:
            return outcome
        elif borrowing is None:
            borrowing = at, outcome
    if borrowing is not None:
        group.at = borrowing[0]
        return borrowing[1]
    group.at = _waits_for(ledger, group)
    return group.answers[group.at]


def set_to_flavor_of(group: EquivalenceClass, victims: Iterable[AdmittedGang]) -> None:
    """Sets the class of a preemptor to the first flavor that its victims have: it is what they leave for."""
    held = {name for victim in victims for name in victim.charge.amounts}
    fitting = [at for at, option in enumerate(group.options) if any(name in held for name, _ in option.amounts)]
    group.at = min(fitting, default=group.at)


def _may_preempt(ledger: Ledger, group: EquivalenceClass, answer: Refused | None) -> bool:
    if answer is None:
        return admission.is_promised(ledger, group.sample.charge)
    return admission_pass.may_preempt(ledger, group.sample, answer, within_min_only=True)


def _waits_for(ledger: Ledger, group: EquivalenceClass) -> int:
    """The first option for which others may have to leave; else the first that the quota admits, or may admit some day."""

    def rank(at: int) -> tuple[int, int]:
        group.at, answer = at, group.answers[at]
        if _may_preempt(ledger, group, answer):
            return 0, at
        if answer is None:
            return 1, at
        return (3 if answer.code is Code.NEVER_FITS else 2), at

    return min(group.answers, key=rank)
