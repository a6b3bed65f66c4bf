"""The pods that a running job gives back to a preemptor while it runs on with the others. Pure.

They are handled like a gang that is evicted, as an `AdmittedGang` that has these pods alone. When a cycle decides it, they
are charged still; once that is written, the job is charged for its new size, and they only use their nodes until they go.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from jobs.core.gang.types import AdmittedGang, SurplusPod
from jobs.core.reasons import Amounts
from jobs.core.resizing import holds
from quotas.core.accounts.ledger import Charge
from quotas.core.reclaiming.candidates import job_of, role_of

Fewer = Mapping[str, int]
"""Role -> how many pods."""


def surplus_charges(gang: AdmittedGang) -> tuple[tuple[str, Amounts], ...]:
    """(role, what its leaf is charged for the pod) of each pod it can give back."""
    return tuple((pod.role, pod.request) for pod in gang.surplus)


def fewer_of(job: str, keys: Iterable[str]) -> Fewer:
    """How many pods of each role of the job these keys of single pods are."""
    return Counter(role_of(key) for key in keys if key != job and job_of(key) == job)


def part_of(gang: AdmittedGang, fewer: Fewer, leaves_for: int) -> AdmittedGang:
    """These pods of the gang: the first that would go."""
    going = _first(gang, fewer)
    amounts = _sum(going)
    return replace(
        gang,
        charge=Charge(gang.charge.leaf, amounts, gang.charge.preemptible),
        total=amounts,
        pods=tuple((pod.node, pod.request) for pod in going if pod.node),
        fewer=tuple(sorted(fewer.items())),
        leaves_for=leaves_for,
        surplus=(),
        unbound=(unbound := tuple(pod.request for pod in going if not pod.node)),
        hold_key=gang.hold_key if unbound else None,
    )


def rest_of(gang: AdmittedGang, fewer: Fewer) -> AdmittedGang:
    """The gang without these pods."""
    going = _first(gang, fewer)
    amounts, left = _sum(going), list(gang.pods)
    for pod in going:
        if pod.node:
            left.remove((pod.node, pod.request))
    return replace(
        gang,
        charge=replace(gang.charge, amounts=_minus(gang.charge.amounts, amounts)),
        total=_minus(gang.total, amounts),
        pods=tuple(left),
        surplus=tuple(pod for pod in gang.surplus if not any(pod is each for each in going)),
    )


def _first(gang: AdmittedGang, fewer: Fewer) -> list[SurplusPod]:
    left, going = dict(fewer), []
    for pod in gang.surplus:
        if left.get(pod.role, 0):
            left[pod.role] -= 1
            going.append(pod)
    return going


def _sum(pods: list[SurplusPod]) -> Amounts:
    amounts: Amounts = {}
    for pod in pods:
        amounts = holds.plus(amounts, pod.request)
    return amounts


def _minus(amounts: Amounts, less: Amounts) -> dict[str, int]:
    return {name: amount - less.get(name, 0) for name, amount in amounts.items()}
