"""What is lost when a job is stopped: nothing much where it is elastic, or has saved its work. Only what it says is known.

An elastic job comes back with whoever is left, a checkpointed one from where it was; neither is looked into here.
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


def of(kind: str, spec: Mapping[str, Any], annotations: Mapping[str, Any], conditions: object) -> Loss:
    """``conditions``: of its copy, as the member tells them."""
    saved = annotations.get(CHECKPOINTED) == "true" or _is_true(CONDITION, conditions)
    return Loss(kind in _ELASTIC_KINDS or any(_stretches(each) for each in _bounded(spec)), saved)


def _is_true(name: str, conditions: object) -> bool:
    told = [each for each in conditions if isinstance(each, dict)] if isinstance(conditions, list) else []
    return any(each.get("type") == name and each.get("status") == "True" for each in told)


def _bounded(spec: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """Where kinds say between how many replicas a job may have."""
    replicas = spec.get("etReplicaSpecs")
    found = [spec.get("elasticPolicy"), *(replicas.values() if isinstance(replicas, dict) else ())]
    return [each for each in found if isinstance(each, dict)]


def _stretches(bounded: Mapping[str, Any]) -> bool:
    least, most = (bounded.get(each) for each in _BOUNDS)
    return isinstance(least, int) and (most is None or (isinstance(most, int) and least < most))
