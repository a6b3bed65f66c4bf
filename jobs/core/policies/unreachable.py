"""What happens to a job whose cluster does not answer, while its copy there may still run; pure."""

from collections.abc import Mapping
from enum import StrEnum

from jobs.core.manifest_fields import Faults

UNREACHABLE = "convoy.dev/unreachable-cluster"
"""Annotation of a policy; its values are those of `Unreachable`."""


class Unreachable(StrEnum):
    REPLACE = "Replace"
    """The job is started elsewhere; two copies may run until the cluster answers. The default."""
    WAIT = "Wait"
    """No other copy is started while one may run."""
    FENCE = "Fence"
    """As Wait, until the agent in the cluster must have stopped the copy there."""


def read(annotations: object, faults: Faults) -> Unreachable:
    value = annotations.get(UNREACHABLE) if isinstance(annotations, Mapping) else None
    faults.one_of(value, f"metadata.annotations.{UNREACHABLE}", tuple(Unreachable))
    return Unreachable(value) if value in tuple(Unreachable) else Unreachable.REPLACE
