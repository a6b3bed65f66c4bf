"""Amounts of a quota in whole units (milli-CPU, bytes, devices, jobs), parsed exactly and formatted for messages.

A limit is a promise, so nothing is rounded here: half a device is refused, where the request of a pod would be rounded up.
"""

from collections.abc import Mapping
from functools import lru_cache

from fleet.core import units
from fleet.kube import quantities
from fleet.kube.quantities import QuantityError

Amounts = Mapping[str, int]

MAX_JOBS = "kube-queue/max-jobs"
PODS = "pods"
COUNTS = (MAX_JOBS, PODS)
"""Resources that are counted rather than consumed: guaranteed, lent and shared only where a node states them in its ``min``."""
UNLIMITED = quantities.MAX
_SPELLINGS = {"koord-queue/max-jobs": MAX_JOBS}
_BYTES = ("memory", "ephemeral-storage", "hugepages-")


def canonical_name(resource: str) -> str:
    """The canonical name of a resource that has several spellings."""
    return _SPELLINGS.get(resource, resource)


def exact_amount(resource: str, value: object) -> int:
    """The amount in whole units; raises `QuantityError` for one that is finer than a unit."""
    return (
        _parse_exactly(resource, value)
        if isinstance(value, (str, int))
        else _parse_exactly.__wrapped__(resource, value)
    )


@lru_cache(maxsize=4096, typed=True)
def _parse_exactly(resource: str, value: object) -> int:
    """Cached, because a tree repeats a few amounts over and over. Typed: ``true`` must not be taken for 1."""
    amount = units.amounts({resource: value})[resource]
    if quantities.parse(value) * (1000 if resource == "cpu" else 1) != amount:
        unit = "1m" if resource == "cpu" else "1"
        raise QuantityError(f"{value!r} is finer than {unit}, the smallest amount of {resource}")
    return amount


def of_job(total: Amounts) -> dict[str, int]:
    """The amounts a job with this total is charged: its total and one job."""
    return {**total, MAX_JOBS: 1}


def format_quantity(resource: str, amount: int) -> str:
    """The canonical text: ``1500m``, ``4Gi``, ``8``."""
    if resource == "cpu":
        return quantities.from_milli(amount)
    return quantities.from_bytes(amount) if resource.startswith(_BYTES) else str(amount)


def format_amount(resource: str, amount: int) -> str:
    """The amount with its resource for messages: ``4 nvidia.com/gpu``, ``1500m cpu``, ``2 jobs``."""
    if amount >= UNLIMITED:
        return f"unlimited {resource}"
    if resource == MAX_JOBS:
        return "1 job" if amount == 1 else f"{amount} jobs"
    return f"{format_quantity(resource, amount)} {resource}"
