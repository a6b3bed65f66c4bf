"""What is lost when a job is evicted: little where it is elastic, or has saved its work. Known only from what it declares.

An elastic job continues with fewer replicas, a checkpointed one from its checkpoint; neither is verified here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

CHECKPOINTED = "convoy.dev/checkpointed"
"""Annotation of a job: ``"true"`` when it saves its work as it goes. A condition of this name on its copy says the same."""
CONDITION = "Checkpointed"
_ELASTIC_KINDS = ("ElasticJob",)
_BOUNDS = ("minReplicas", "maxReplicas")


@dataclass(frozen=True, slots=True)
class Loss:
    elastic: bool = False
    checkpointed: bool = False


def eviction_loss(kind: str, spec: Mapping[str, Any], annotations: Mapping[str, Any], conditions: object) -> Loss:
    """The loss by what the job declares; ``conditions`` are those of its copy in the member."""
    saved = annotations.get(CHECKPOINTED) == "true" or _is_true(CONDITION, conditions)
    return Loss(kind in _ELASTIC_KINDS or any(_is_elastic(bounds) for bounds in _replica_bounds(spec)), saved)


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
