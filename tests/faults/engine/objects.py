"""Objects of members as the judge reads them: whose copy, in which state, how many GPUs. Knows no code of the product."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.faults.engine.users import GPU

JOB, ATTEMPT = "convoy.dev/job-uid", "convoy.dev/attempt"
FINISHED = ("Succeeded", "Failed")
Object = Mapping[str, Any]
Key = tuple[str, int]
"""The job's uid and the number of the attempt."""


def demand(copy: Object, pods: Sequence[Object]) -> int:
    """GPUs that a copy uses or will use."""
    if key(copy) is None or condition(copy) in FINISHED:
        return 0
    mine = [pod for pod in pods if key(pod) == key(copy)]
    active = sum(gpus(pod["spec"]) for pod in mine if is_active(pod))
    if copy["metadata"].get("deletionTimestamp") or is_suspended(copy):
        return active
    ended = sum(gpus(pod["spec"]) for pod in mine if not is_active(pod))
    return max(total(copy) - ended, active)


def is_live(copy: Object) -> bool:
    leaving = copy["metadata"].get("deletionTimestamp") or is_suspended(copy)
    return not leaving and condition(copy) not in FINISHED


def total(copy: Object) -> int:
    """GPUs of all pods that it asks for."""
    return sum(count * gpus(spec) for count, spec in _roles(copy))


def pods_asked(copy: Object) -> int:
    return sum(count for count, _ in _roles(copy))


def _roles(copy: Object) -> list[tuple[int, Object]]:
    """Of each role, how many pods, and what a pod is."""
    spec = copy["spec"]
    if "pytorchReplicaSpecs" in spec:
        roles = spec["pytorchReplicaSpecs"].values()
        return [(int(role.get("replicas", 1)), role["template"]["spec"]) for role in roles]
    return [(int(spec.get("parallelism", 1)), spec["template"]["spec"])]


def is_suspended(copy: Object) -> bool:
    spec = copy["spec"]
    return bool(spec.get("suspend") or (spec.get("runPolicy") or {}).get("suspend"))


def condition(copy: Object) -> str:
    true = {c["type"] for c in (copy.get("status") or {}).get("conditions") or [] if c.get("status") == "True"}
    return "Failed" if "Failed" in true else "Succeeded" if true & {"Succeeded", "Complete"} else ""


def state(copy: Object) -> str:
    leaving = " leaving" if copy["metadata"].get("deletionTimestamp") else " suspended" if is_suspended(copy) else ""
    return f"{condition(copy) or 'live'}{leaving}"


def is_active(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") not in FINISHED


def gpus(spec: Object) -> int:
    return sum(int((c.get("resources") or {}).get("limits", {}).get(GPU, 0)) for c in spec["containers"])


def key(body: Object) -> Key | None:
    labels = body["metadata"].get("labels") or {}
    return (labels[JOB], int(labels[ATTEMPT])) if JOB in labels and ATTEMPT in labels else None


def name(body: Object) -> str:
    return str(body["metadata"]["name"])
