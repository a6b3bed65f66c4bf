"""What is lost when a job is evicted: all since it last saved, and little where it is elastic or saves as it goes.

Known only from what it declares: an elastic job continues with fewer replicas, a checkpointed one from its checkpoint.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

CHECKPOINTED = "convoy.dev/checkpointed"
"""Annotation of a job: ``"true"`` when it saves its work as it goes, or the time of its last checkpoint (RFC 3339).

A condition `CONDITION` on its copy says the same as ``"true"``.
"""
CONDITION = "Checkpointed"
_ELASTIC_KINDS = ("ElasticJob",)
_BOUNDS = ("minReplicas", "maxReplicas")


@dataclass(frozen=True, slots=True)
class Loss:
    elastic: bool = False
    checkpointed: bool = False
    saved_at: datetime | None = None
    """When it last saved its work; None: it does not say, and if it is checkpointed it saves as it goes."""

    def seconds(self, started_at: datetime, now: datetime) -> float:
        """How much of its work is lost when it is evicted now."""
        if self.elastic or (self.checkpointed and self.saved_at is None):
            return 0.0
        return max((now - max(started_at, self.saved_at or started_at)).total_seconds(), 0.0)


def eviction_loss(kind: str, spec: Mapping[str, Any], annotations: Mapping[str, Any], conditions: object) -> Loss:
    """The loss by what the job declares; ``conditions`` are those of its copy in the member."""
    as_it_goes = annotations.get(CHECKPOINTED) == "true" or _is_true(CONDITION, conditions)
    saved_at = None if as_it_goes else _time(annotations.get(CHECKPOINTED))
    is_elastic = kind in _ELASTIC_KINDS or any(_is_elastic(bounds) for bounds in _replica_bounds(spec))
    return Loss(is_elastic, as_it_goes or saved_at is not None, saved_at)


def _time(value: object) -> datetime | None:
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return at if at and at.tzinfo else None


def _is_true(name: str, conditions: object) -> bool:
    listed = conditions if isinstance(conditions, list) else []
    return any(isinstance(c, dict) and c.get("type") == name and c.get("status") == "True" for c in listed)


def _replica_bounds(spec: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """The objects in which kinds state a minimum and maximum of replicas."""
    replicas = spec.get("etReplicaSpecs")
    stated = [spec.get("elasticPolicy"), *(replicas.values() if isinstance(replicas, dict) else ())]
    return [bounds for bounds in stated if isinstance(bounds, dict)]


def _is_elastic(bounds: Mapping[str, Any]) -> bool:
    least, most = (bounds.get(name) for name in _BOUNDS)
    return isinstance(least, int) and (most is None or (isinstance(most, int) and least < most))
