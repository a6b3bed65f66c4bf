"""PriorityClasses of the fleet (`scheduling.k8s.io/v1`): how urgent the jobs are that name one. Pure.

Members have classes of their own, which need not agree; the fleet never asks them. A class says a number and nothing else: a
field that would be ignored is refused.
"""

from collections.abc import Mapping
from typing import Any

from fleet.errors import FieldFault

HIGHEST = 10**9
"""What is above is the system's, as in Kubernetes."""
SYSTEM = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""Those every cluster has."""
_PREEMPTS = "PreemptLowerPriority"


def faults_of(manifest: Mapping[str, Any]) -> list[FieldFault]:
    faults = []
    if str(manifest["metadata"].get("name")).startswith("system-"):
        faults.append(FieldFault("metadata.name", "must not begin with system-: those classes are the clusters' own"))
    value = manifest.get("value")
    if type(value) is not int or abs(value) > HIGHEST:
        faults.append(FieldFault("value", f"must be a whole number from -{HIGHEST} to {HIGHEST}, not {value!r}"))
    if manifest.get("globalDefault"):
        faults.append(FieldFault("globalDefault", "is not supported: a job that names no class has priority 0"))
    if manifest.get("preemptionPolicy", _PREEMPTS) != _PREEMPTS:
        detail = "is not supported: whether jobs preempt by priority is their queue's `preempt-policy`"
        faults.append(FieldFault("preemptionPolicy", detail))
    return faults


def value_of(manifest: Mapping[str, Any]) -> int:
    return int(manifest["value"])
