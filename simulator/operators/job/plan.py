"""The decisions of the Job controller about one batch/v1 Job: from the job, its pods and the time to pods and status. No I/O.

Pod names follow from the job's uid and a serial number, so making the same pod twice is refused by the API server and
not a second pod. Pods that ended must stay until the job is over: they are what is counted.
"""

import copy
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

from simulator.machinery.clock import stamp
from simulator.machinery.objects import (
    Object,
    annotations_of,
    is_finished,
    is_leaving,
    is_true,
    labels_of,
    name_of,
    namespace_of,
    node_of,
    owner_reference,
    phase_of,
    restarts_of,
    uid_of,
)

INDEX = "batch.kubernetes.io/job-completion-index"
OURS = ("", "kubernetes.io/job-controller")
BACKOFF_LIMIT = 6
RETRY_FIRST_S, RETRY_MOST_S = 10.0, 360.0
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(slots=True)
class Decision:
    status: Object
    create: list[Object] = field(default_factory=list)
    delete: list[str] = field(default_factory=list)
    expired: bool = False
    again_s: float | None = None


@dataclass(frozen=True, slots=True)
class Times:
    """The time for decisions: exact times where known, and the length of a simulated second."""

    now: float
    real: Callable[[float], float]
    started: float | None
    completed: float | None
    last_failure: float | None = None


def is_ours(job: Object) -> bool:
    return not is_leaving(job) and str(job["spec"].get("managedBy") or "") in OURS


def is_over(job: Object) -> bool:
    return is_true(job, "Complete") or is_true(job, "Failed")


def is_indexed(job: Object) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def decide(job: Object, pods: list[Object], times: Times) -> Decision:
    decision = Decision(status=copy.deepcopy(job.get("status") or {}))
    if is_over(job):
        _expire(job, decision, times)
        return decision
    _count(pods, decision.status)
    if job["spec"].get("suspend"):
        _suspend(pods, decision, times)
        return decision
    if is_true(job, "Suspended"):
        _put(decision.status, "Suspended", times, true=False, reason="JobResumed", message="Job resumed")
    started = times.started
    if started is None or is_true(job, "Suspended"):
        started = times.now
        decision.status["startTime"] = stamp(times.now)
    _run(job, pods, decision, times, started)
    return decision


def _run(job: Object, pods: list[Object], decision: Decision, times: Times, started: float) -> None:
    spec, status = job["spec"], decision.status
    deadline = spec.get("activeDeadlineSeconds")
    live = [pod for pod in pods if not is_finished(pod)]
    if deadline is not None and times.now >= started + times.real(float(deadline)):
        _fail(live, decision, times, "DeadlineExceeded", "Job was active longer than specified deadline")
        return
    limit = BACKOFF_LIMIT if spec.get("backoffLimit") is None else int(spec["backoffLimit"])
    in_place = spec["template"]["spec"].get("restartPolicy") == "OnFailure"
    restarts = sum(restarts_of(pod) for pod in live)
    if status.get("failed", 0) > limit or (in_place and restarts and restarts > limit):
        _fail(live, decision, times, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
        return
    if _is_complete(job, pods, live):
        status["completionTime"] = stamp(times.now)
        _put(
            status, "Complete", times, reason="CompletionsReached", message="Reached expected number of succeeded pods"
        )
        return
    _refill(job, pods, live, decision, times)
    if deadline is not None:
        due_s = max(started + times.real(float(deadline)) - times.now, 0.0) + 0.001
        decision.again_s = min(due_s, decision.again_s or due_s)


def _is_complete(job: Object, pods: list[Object], live: list[Object]) -> bool:
    _, completions = _size(job["spec"])
    done = [pod for pod in pods if phase_of(pod) == "Succeeded"]
    if completions is None:
        return bool(done) and not live
    return (len({index_of(pod) for pod in done}) if is_indexed(job) else len(done)) >= completions


def _refill(job: Object, pods: list[Object], live: list[Object], decision: Decision, times: Times) -> None:
    """Keeps as many pods running as parallelism and the missing completions allow. After a failure, it waits first."""
    parallelism, completions = _size(job["spec"])
    done = [pod for pod in pods if phase_of(pod) == "Succeeded"]
    unbounded = len(live) if done else parallelism
    wanted = unbounded if completions is None else min(parallelism, completions - len(done))
    decision.delete += _excess([pod for pod in live if not is_leaving(pod)], max(wanted, 0))
    missing = wanted - len(live)
    failures = decision.status.get("failed", 0)
    if missing <= 0:
        return
    if failures and times.last_failure is not None:
        pause_s = min(RETRY_FIRST_S * 2 ** min(failures - 1, 10), RETRY_MOST_S)
        left_s = times.last_failure + times.real(pause_s) - times.now
        if left_s > 0:
            decision.again_s = left_s + 0.001
            return
    if is_indexed(job):
        taken = {index_of(pod) for pod in [*live, *done]}
        free = [index for index in range(completions or 0) if index not in taken][:missing]
        decision.create = [pod_of(job, index, _tries(pods, index)) for index in free]
    else:
        decision.create = [pod_of(job, None, len(pods) + i) for i in range(missing)]


def _excess(staying: list[Object], wanted: int) -> list[str]:
    """The names of the pods to delete: first those without a node, then those that do not run, then the last ones."""
    first = sorted(reversed(staying), key=lambda pod: (bool(node_of(pod)), phase_of(pod) == "Running"))
    return [name_of(pod) for pod in first[: max(len(staying) - wanted, 0)]]


def _size(spec: Object) -> tuple[int, int | None]:
    """Parallelism and completions as the API server defaults them: neither given means one of each."""
    parallelism, completions = spec.get("parallelism"), spec.get("completions")
    if parallelism is None and completions is None:
        return 1, 1
    return (1 if parallelism is None else int(parallelism)), (None if completions is None else int(completions))


def index_of(pod: Object) -> int:
    return int(annotations_of(pod).get(INDEX) or labels_of(pod).get(INDEX) or -1)


def _tries(pods: list[Object], index: int) -> int:
    return sum(1 for pod in pods if index_of(pod) == index)


def pod_of(job: Object, index: int | None, serial: int) -> Object:
    template = copy.deepcopy(job["spec"]["template"])
    meta, spec = template.get("metadata") or {}, template["spec"]
    name, uid = name_of(job), uid_of(job)
    labels = {
        **(meta.get("labels") or {}),
        "job-name": name,
        "controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        "batch.kubernetes.io/controller-uid": uid,
    }
    annotations = dict(meta.get("annotations") or {})
    middle = ""
    if index is not None:
        labels[INDEX] = annotations[INDEX] = str(index)
        middle = f"-{index}"
        spec.setdefault("hostname", f"{name}-{index}")
        for container in [*(spec.get("initContainers") or []), *spec["containers"]]:
            container["env"] = [*(container.get("env") or []), {"name": "JOB_COMPLETION_INDEX", "value": str(index)}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": namespace_of(job),
            "name": f"{name}{middle}-{_ending(f'{uid}/{index}/{serial}')}",
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [owner_reference(job, "batch/v1", "Job")],
        },
        "spec": spec,
    }


def _ending(seed: str) -> str:
    digest = hashlib.sha256(seed.encode()).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:5])


def _count(pods: list[Object], status: Object) -> None:
    counts = {
        "active": sum(1 for pod in pods if not is_finished(pod) and not is_leaving(pod)),
        "succeeded": sum(1 for pod in pods if phase_of(pod) == "Succeeded"),
        "failed": sum(1 for pod in pods if phase_of(pod) == "Failed"),
    }
    for name, value in counts.items():
        if value:
            status[name] = value
        else:
            status.pop(name, None)


def _suspend(pods: list[Object], decision: Decision, times: Times) -> None:
    decision.delete = [name_of(pod) for pod in pods if not is_finished(pod) and not is_leaving(pod)]
    decision.status.pop("startTime", None)
    decision.status.pop("active", None)
    _put(decision.status, "Suspended", times, reason="JobSuspended", message="Job suspended")


def _fail(live: list[Object], decision: Decision, times: Times, reason: str, message: str) -> None:
    decision.delete = [name_of(pod) for pod in live if not is_leaving(pod)]
    decision.status.pop("active", None)
    _put(decision.status, "Failed", times, reason=reason, message=message)


def _expire(job: Object, decision: Decision, times: Times) -> None:
    ttl = job["spec"].get("ttlSecondsAfterFinished")
    if ttl is None or times.completed is None:
        return
    left_s = times.completed + times.real(float(ttl)) - times.now
    decision.expired = left_s <= 0
    decision.again_s = max(left_s, 0.0) + 0.001


def _put(status: Object, kind: str, times: Times, *, reason: str, message: str, true: bool = True) -> None:
    conditions = status.setdefault("conditions", [])
    value = "True" if true else "False"
    if any(c["type"] == kind and c["status"] == value for c in conditions):
        return
    at = stamp(times.now)
    entry = {"type": kind, "status": value, "lastProbeTime": at, "lastTransitionTime": at}
    entry |= {"reason": reason, "message": message}
    status["conditions"] = [c for c in conditions if c["type"] != kind] + [entry]
