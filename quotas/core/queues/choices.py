"""Which flavor a job is given in a simulation: those it may use are tried in the order, and with the patience, of its queue.

The scheduling cycle decides the same with places and classes of jobs (`jobs.core.scheduling.flavor_choice`).
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

from quotas.core.accounts.ledger import Charge, Ledger
from quotas.core.queues import admission
from quotas.core.queues.admission import Code, Refused
from quotas.core.queues.order import Unit
from quotas.core.trees.flavors import FlavorChoice, flavors_of


@dataclass(frozen=True, slots=True)
class RefusedEach(Refused):
    """The refusal of the flavor that the job waits for, with a message that says of each why not."""

    each: tuple[tuple[str, str], ...] = ()
    """(flavor, why not)."""

    @property
    def message(self) -> str:
        return "; ".join(f"{flavor}: {why}" for flavor, why in self.each)


def choices_of(unit: Unit) -> list[Unit]:
    """The job with each charge that it may have."""
    return [replace(unit, charge=charge) for charge in unit.choices] or [unit]


def find_never_fitting(ledger: Ledger, unit: Unit) -> Refused | None:
    """The refusal of a job that fits with none of its charges even where nothing runs; None for all others."""
    if not unit.choices:
        return admission.find_never_fitting(ledger, unit.charge)
    answers = [(charge, admission.find_never_fitting(ledger, charge)) for charge in unit.choices]
    never = [(charge, answer) for charge, answer in answers if answer is not None]
    return _of_each(ledger, never) if len(never) == len(answers) else None


def choose(ledger: Ledger, unit: Unit, has_place: Callable[[Unit], bool], *, stops: bool) -> Unit | Refused | None:
    """The job with the first charge that is possible; else the quota's refusal, or None if only a place is missing.

    ``stops``: where its queue says so, it waits for the first flavor that can be had by reclaim.
    """
    preference = ledger.tree.by_path[unit.leaf].attributes.preference
    borrowing: Unit | None = None
    lacks_place = False
    refused: list[tuple[Charge, Refused]] = []
    options = choices_of(unit)
    for option in options:
        charge = option.charge
        answer = admission.check_admission(ledger, unit.leaf, charge.amounts, preemptible=charge.preemptible)
        if isinstance(answer, Refused):
            refused.append((charge, answer))
            if stops and preference.when_can_preempt is FlavorChoice.STOP and _may_reclaim(ledger, charge, answer):
                break
        elif has_place(option):
            tries_next = len(options) > 1 and preference.when_can_borrow is FlavorChoice.NEXT
            if not (tries_next and admission.borrows_gpus(ledger, charge)):
                return option
            borrowing = borrowing or option
        else:
            lacks_place = True
    if borrowing is not None or lacks_place:
        return borrowing
    return refused[0][1] if len(options) == 1 else _of_each(ledger, refused)


def _may_reclaim(ledger: Ledger, charge: Charge, answer: Refused) -> bool:
    return answer.code is not Code.NEVER_FITS and admission.promised_below(ledger, charge, answer)


def _of_each(ledger: Ledger, refused: list[tuple[Charge, Refused]]) -> RefusedEach:
    def rank(entry: tuple[Charge, Refused]) -> tuple[bool, bool]:
        return not _may_reclaim(ledger, *entry), entry[1].code is Code.NEVER_FITS

    waits_for = min(refused, key=rank)[1]
    each = tuple(("+".join(sorted(flavors_of(charge.amounts))), answer.message) for charge, answer in refused)
    return RefusedEach(**{field.name: getattr(waits_for, field.name) for field in fields(Refused)}, each=each)
