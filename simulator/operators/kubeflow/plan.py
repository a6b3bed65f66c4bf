"""The decisions of the training operator: from kind, job, pods and time to pods, services and status. No I/O.

The rules are those all kinds of kubeflow.org/v1 share: conditions are final once Succeeded or Failed; suspension stops
every clock; a failed pod is fatal, or replaced under its old name, as its role's restart policy says.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field

from simulator.machinery import conditions
from simulator.machinery.clock import stamp
from simulator.machinery.objects import (
    Object,
    exit_code,
    is_finished,
    is_leaving,
    name_of,
    namespace_of,
    phase_of,
    restarts_of,
)
from simulator.operators.kubeflow.pods import Count, Counts, KubeflowKind, policy_of, replicas_of

OURS = ("", "kubeflow.org/training-operator")
RETRYABLE = 128
"""With restart policy ExitCode, exit codes from this one on are retried."""


@dataclass(slots=True)
class Decision:
    status: Object
    create: list[tuple[str, int]] = field(default_factory=list)
    """Roles and indices without a pod."""
    delete: list[str] = field(default_factory=list)
    drop_services: list[str] = field(default_factory=list)
    drop_group: bool = False
    expired: bool = False
    """Whether the job must be deleted because its time to live is over."""
    replaced: int = 0
    """Failed pods to delete and create again. They count against backoffLimit."""
    again_s: float | None = None


@dataclass(frozen=True, slots=True)
class Times:
    """The time for decisions: exact times where known. ``real`` converts simulated to real seconds."""

    now: float
    real: Callable[[float], float]
    started: float | None
    completed: float | None
    replaced: int = 0
    """Pods replaced so far."""


def is_ours(job: Object) -> bool:
    return not is_leaving(job) and str(policy_of(job).get("managedBy") or "") in OURS


def decide(kubeflow_kind: KubeflowKind, job: Object, pods: list[Object], times: Times) -> Decision:
    decision = Decision(status=copy.deepcopy(job.get("status") or {}))
    status = decision.status
    if not any(c["type"] == "Created" for c in status.get("conditions") or []):
        _say(kubeflow_kind, job, status, "Created", "Created", "is created.", times)
    if conditions.has(status, "Succeeded") or conditions.has(status, "Failed"):
        _clean_up(job, pods, decision, times)
        return decision
    wrong = kubeflow_kind.wrong(job)
    if wrong:
        _finish(kubeflow_kind, job, status, "Failed", "FailedValidation", f"can never run: {wrong}.", times)
    elif policy_of(job).get("suspend"):
        _suspend(kubeflow_kind, job, pods, decision, times)
    else:
        _run(kubeflow_kind, job, pods, decision, times)
    return decision


def _run(kubeflow_kind: KubeflowKind, job: Object, pods: list[Object], decision: Decision, times: Times) -> None:
    status = decision.status
    started = times.started
    if conditions.has(status, "Suspended"):
        _say(kubeflow_kind, job, status, "Suspended", "Resumed", "is resumed.", times, true=False)
        started = None
    if started is None:
        started = times.now
        status["startTime"] = stamp(times.now)
    over = _over_limit(kubeflow_kind, job, pods, times, started)
    if over:
        decision.delete += [name_of(pod) for pod in pods if not is_finished(pod) and not is_leaving(pod)]
        _count_roles(kubeflow_kind, job, pods, decision)
        _finish(kubeflow_kind, job, status, "Failed", "Failed", over, times)
        return
    counts = _count_roles(kubeflow_kind, job, pods, decision)
    _judge(kubeflow_kind, job, counts, decision, times)
    if conditions.has(status, "Succeeded") or conditions.has(status, "Failed"):
        decision.create = []
        return
    deadline = policy_of(job).get("activeDeadlineSeconds")
    if deadline is not None:
        decision.again_s = max(started + times.real(float(deadline)) - times.now, 0.0) + 0.001


def _over_limit(kubeflow_kind: KubeflowKind, job: Object, pods: list[Object], times: Times, started: float) -> str:
    policy = policy_of(job)
    deadline, limit = policy.get("activeDeadlineSeconds"), policy.get("backoffLimit")
    if deadline is not None and times.now >= started + times.real(float(deadline)):
        return "has failed because it was active longer than specified deadline"
    if limit is None:
        return ""
    patient = {
        role for role, spec in kubeflow_kind.roles_of(job).items() if kubeflow_kind.restart_policy_of(spec) != "Never"
    }
    restarts = sum(
        restarts_of(pod) for pod in pods if kubeflow_kind.place_of(pod)[0] in patient and phase_of(pod) == "Running"
    )
    doomed = sum(1 for pod in pods if kubeflow_kind.place_of(pod)[0] in patient and phase_of(pod) == "Failed")
    if restarts >= max(int(limit), 1) or (doomed and times.replaced + doomed > int(limit)):
        return "has failed because it has reached the specified backoff limit"
    return ""


def _count_roles(kubeflow_kind: KubeflowKind, job: Object, pods: list[Object], decision: Decision) -> Counts:
    """Counts the pods of each role, and determines the pods to create, to replace and to remove."""
    present = {kubeflow_kind.place_of(pod): pod for pod in pods}
    counts = {}
    for role, spec in kubeflow_kind.roles_of(job).items():
        count = counts[role] = Count()
        for index in range(replicas_of(spec)):
            pod = present.pop((role, index), None)
            if pod is None:
                decision.create.append((role, index))
            else:
                policy = "Never" if kubeflow_kind.made_by_job(role) else kubeflow_kind.restart_policy_of(spec)
                _count_pod(pod, index, policy, count, decision)
        decision.status.setdefault("replicaStatuses", {})[role] = {
            **({"active": count.active} if count.active else {}),
            **({"succeeded": count.succeeded} if count.succeeded else {}),
            **({"failed": count.failed} if count.failed else {}),
        }
    decision.create = [(role, index) for role, index in decision.create if kubeflow_kind.due(job, role, counts)]
    surplus = [name_of(pod) for pod in present.values() if not is_leaving(pod)]
    decision.delete += surplus
    decision.drop_services += surplus
    return counts


def _count_pod(pod: Object, index: int, policy: str, count: Count, decision: Decision) -> None:
    match phase_of(pod):
        case "Succeeded":
            count.succeeded += 1
            count.done.add(index)
        case "Running":
            if is_leaving(pod):
                count.failed += 1
            else:
                count.active += 1
        case "Failed":
            count.failed += 1
            permanent = policy == "ExitCode" and (exit_code(pod) or 0) < RETRYABLE
            if policy == "Never" or permanent:
                count.fatal += 1
            elif not is_leaving(pod):
                decision.delete.append(name_of(pod))
                decision.replaced += 1


def _judge(kubeflow_kind: KubeflowKind, job: Object, counts: Counts, decision: Decision, times: Times) -> None:
    """Determines the job's condition. Success takes precedence over failure, then restarting, then running."""
    status = decision.status
    if kubeflow_kind.succeeded(job, counts):
        _fold_active(status)
        _finish(kubeflow_kind, job, status, "Succeeded", "Succeeded", "is successfully completed.", times)
        return
    for role, count in counts.items():
        if count.fatal and not kubeflow_kind.tolerates(job, role):
            words = f"is failed because {count.fatal} {role} replica(s) failed."
            _finish(kubeflow_kind, job, status, "Failed", "Failed", words, times)
            return
    for role, count in counts.items():
        if count.failed and not kubeflow_kind.tolerates(job, role):
            words = f"is restarting because {count.failed} {role} replica(s) failed."
            _say(kubeflow_kind, job, status, "Restarting", "Restarting", words, times)
            return
    if kubeflow_kind.runs(job, counts):
        _say(kubeflow_kind, job, status, "Running", "Running", "is running.", times)


def _suspend(kubeflow_kind: KubeflowKind, job: Object, pods: list[Object], decision: Decision, times: Times) -> None:
    status = decision.status
    decision.delete += [name_of(pod) for pod in pods if not is_leaving(pod)]
    decision.drop_services += [name_of(pod) for pod in pods]
    decision.drop_group = bool(pods) or not conditions.has(status, "Suspended")
    conditions.deny(
        status,
        "Running",
        reason=f"{kubeflow_kind.kind}Suspended",
        message=f"{kubeflow_kind.kind} {namespace_of(job)}/{name_of(job)} is suspended.",
        now=times.now,
    )
    _say(kubeflow_kind, job, status, "Suspended", "Suspended", "is suspended.", times)
    status.pop("startTime", None)
    for replica in (status.get("replicaStatuses") or {}).values():
        replica.pop("active", None)


def _clean_up(job: Object, pods: list[Object], decision: Decision, times: Times) -> None:
    """After the end: removes pods by cleanPodPolicy, and the job after its time to live."""
    policy = policy_of(job)
    clean = str(policy.get("cleanPodPolicy") or "None")
    drop = [pod for pod in pods if clean == "All" or (clean == "Running" and not is_finished(pod))]
    decision.delete += [name_of(pod) for pod in drop if not is_leaving(pod)]
    decision.drop_services += [name_of(pod) for pod in drop]
    decision.drop_group = bool(decision.delete)
    ttl = policy.get("ttlSecondsAfterFinished")
    if ttl is not None and times.completed is not None:
        left_s = times.completed + times.real(float(ttl)) - times.now
        decision.expired = left_s <= 0
        decision.again_s = max(left_s, 0.0) + 0.001


def _finish(
    kubeflow_kind: KubeflowKind, job: Object, status: Object, kind: str, suffix: str, words: str, times: Times
) -> None:
    status["completionTime"] = stamp(times.now)
    message = _message(kubeflow_kind, job, words)
    conditions.deny(status, "Running", reason=f"{kubeflow_kind.kind}{suffix}", message=message, now=times.now)
    conditions.deny(status, "Restarting", reason=f"{kubeflow_kind.kind}{suffix}", message=message, now=times.now)
    _say(kubeflow_kind, job, status, kind, suffix, words, times)


def _fold_active(status: Object) -> None:
    for replica in (status.get("replicaStatuses") or {}).values():
        if active := replica.pop("active", 0):
            replica["succeeded"] = replica.get("succeeded", 0) + active


def _say(
    kubeflow_kind: KubeflowKind,
    job: Object,
    status: Object,
    kind: str,
    suffix: str,
    words: str,
    times: Times,
    *,
    true: bool = True,
) -> None:
    message = _message(kubeflow_kind, job, words)
    conditions.put(status, kind, true=true, reason=f"{kubeflow_kind.kind}{suffix}", message=message, now=times.now)


def _message(kubeflow_kind: KubeflowKind, job: Object, words: str) -> str:
    return f"{kubeflow_kind.kind} {namespace_of(job)}/{name_of(job)} {words}"
