"""What the training operator does next about one PyTorchJob: (job, its pods, the time) -> pods, services, status. Pure.

The rules are those of the kubeflow.org/v1 operator: conditions are final once Succeeded or Failed; suspension stops
every clock; a failed pod is fatal, or replaced under its old name, as its role's restart policy says.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field

from . import conditions
from .clock import stamp
from .objects import Object, exit_code, is_finished, is_leaving, name_of, namespace_of, phase_of, restarts_of
from .pytorch_pods import place_of, policy_of, replicas_of, restart_policy_of, roles_of, what_is_wrong

OURS = ("", "kubeflow.org/training-operator")
RETRYABLE = 128
"""Exit codes from here on are worth a new try under ExitCode."""


@dataclass(slots=True)
class Decision:
    status: Object
    create: list[tuple[str, int]] = field(default_factory=list)
    """Roles and indices without a pod."""
    delete: list[str] = field(default_factory=list)
    drop_services: list[str] = field(default_factory=list)
    drop_group: bool = False
    expired: bool = False
    """The job itself is to be deleted: its time to live is over."""
    replaced: int = 0
    """Failed pods deleted to be made anew: counts against backoffLimit."""
    again_s: float | None = None


@dataclass(frozen=True, slots=True)
class Times:
    """The moments a decision needs, exact where we know them; ``real`` turns simulated seconds into the machine's."""

    now: float
    real: Callable[[float], float]
    started: float | None
    completed: float | None
    replaced: int = 0
    """Pods replaced so far."""


@dataclass(slots=True)
class _Count:
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    fatal: int = 0


def is_ours(job: Object) -> bool:
    return not is_leaving(job) and str(policy_of(job).get("managedBy") or "") in OURS


def decide(job: Object, pods: list[Object], times: Times) -> Decision:
    decision = Decision(status=copy.deepcopy(job.get("status") or {}))
    status = decision.status
    _say(job, status, "Created", "Created", "is created.", times, only_new=True)
    if conditions.has(status, "Succeeded") or conditions.has(status, "Failed"):
        _clean_up(job, pods, decision, times)
        return decision
    wrong = what_is_wrong(job)
    if wrong:
        _finish(job, status, "Failed", "FailedValidation", f"can never run: {wrong}.", times)
    elif policy_of(job).get("suspend"):
        _suspend(job, pods, decision, times)
    else:
        _run(job, pods, decision, times)
    return decision


def _run(job: Object, pods: list[Object], decision: Decision, times: Times) -> None:
    status = decision.status
    started = times.started
    if conditions.has(status, "Suspended"):
        _say(job, status, "Suspended", "Resumed", "is resumed.", times, true=False)
        started = None
    if started is None:
        started = times.now
        status["startTime"] = stamp(times.now)
    over = _over_limit(job, pods, times, started)
    if over:
        decision.delete += [name_of(pod) for pod in pods if not is_finished(pod) and not is_leaving(pod)]
        _count_roles(job, pods, decision)
        _finish(job, status, "Failed", "Failed", over, times)
        return
    counts = _count_roles(job, pods, decision)
    _judge(job, counts, decision, times)
    if conditions.has(status, "Succeeded") or conditions.has(status, "Failed"):
        decision.create = []
        return
    deadline = policy_of(job).get("activeDeadlineSeconds")
    if deadline is not None:
        decision.again_s = max(started + times.real(float(deadline)) - times.now, 0.0) + 0.001


def _over_limit(job: Object, pods: list[Object], times: Times, started: float) -> str:
    policy = policy_of(job)
    deadline, limit = policy.get("activeDeadlineSeconds"), policy.get("backoffLimit")
    if deadline is not None and times.now >= started + times.real(float(deadline)):
        return "has failed because it was active longer than specified deadline"
    if limit is None:
        return ""
    patient = {role for role, spec in roles_of(job).items() if restart_policy_of(spec) != "Never"}
    restarts = sum(restarts_of(pod) for pod in pods if place_of(pod)[0] in patient and phase_of(pod) == "Running")
    doomed = sum(1 for pod in pods if place_of(pod)[0] in patient and phase_of(pod) == "Failed")
    if restarts >= max(int(limit), 1) or (doomed and times.replaced + doomed > int(limit)):
        return "has failed because it has reached the specified backoff limit"
    return ""


def _count_roles(job: Object, pods: list[Object], decision: Decision) -> dict[str, _Count]:
    """Counts the pods of each role, and notes those to make, to replace and to remove."""
    present = {place_of(pod): pod for pod in pods}
    counts = {}
    for role, spec in roles_of(job).items():
        count = counts[role] = _Count()
        for index in range(replicas_of(spec)):
            pod = present.pop((role, index), None)
            if pod is None:
                decision.create.append((role, index))
            else:
                _count_pod(pod, restart_policy_of(spec), count, decision)
        decision.status.setdefault("replicaStatuses", {})[role] = {
            **({"active": count.active} if count.active else {}),
            **({"succeeded": count.succeeded} if count.succeeded else {}),
            **({"failed": count.failed} if count.failed else {}),
        }
    surplus = [name_of(pod) for pod in present.values() if not is_leaving(pod)]
    decision.delete += surplus
    decision.drop_services += surplus
    return counts


def _count_pod(pod: Object, policy: str, count: _Count, decision: Decision) -> None:
    match phase_of(pod):
        case "Succeeded":
            count.succeeded += 1
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


def _judge(job: Object, counts: dict[str, _Count], decision: Decision, times: Times) -> None:
    """Success before failure, failure before restart, restart before running."""
    status, roles = decision.status, roles_of(job)
    chief = "Master" if "Master" in counts else "Worker"
    done = counts[chief].succeeded
    needed = 1 if chief == "Master" or "elasticPolicy" in job["spec"] else replicas_of(roles[chief])
    if needed and done >= needed:
        _fold_active(status)
        _finish(job, status, "Succeeded", "Succeeded", "is successfully completed.", times)
        return
    for role, count in counts.items():
        if count.fatal:
            words = f"is failed because {count.fatal} {role} replica(s) failed."
            _finish(job, status, "Failed", "Failed", words, times)
            return
    for role, count in counts.items():
        if count.failed:
            words = f"is restarting because {count.failed} {role} replica(s) failed."
            _say(job, status, "Restarting", "Restarting", words, times)
            return
    if counts[chief].active:
        _say(job, status, "Running", "Running", "is running.", times)


def _suspend(job: Object, pods: list[Object], decision: Decision, times: Times) -> None:
    status = decision.status
    decision.delete += [name_of(pod) for pod in pods if not is_leaving(pod)]
    decision.drop_services += [name_of(pod) for pod in pods]
    decision.drop_group = bool(pods) or not conditions.has(status, "Suspended")
    conditions.deny(
        status,
        "Running",
        reason="PyTorchJobSuspended",
        message=f"PyTorchJob {namespace_of(job)}/{name_of(job)} is suspended.",
        now=times.now,
    )
    _say(job, status, "Suspended", "Suspended", "is suspended.", times)
    status.pop("startTime", None)
    for replica in (status.get("replicaStatuses") or {}).values():
        replica.pop("active", None)


def _clean_up(job: Object, pods: list[Object], decision: Decision, times: Times) -> None:
    """After the end: what cleanPodPolicy says, then the time to live."""
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


def _finish(job: Object, status: Object, kind: str, suffix: str, words: str, times: Times) -> None:
    status["completionTime"] = stamp(times.now)
    message = _message(job, words)
    conditions.deny(status, "Running", reason=f"PyTorchJob{suffix}", message=message, now=times.now)
    conditions.deny(status, "Restarting", reason=f"PyTorchJob{suffix}", message=message, now=times.now)
    _say(job, status, kind, suffix, words, times)


def _fold_active(status: Object) -> None:
    for replica in (status.get("replicaStatuses") or {}).values():
        if active := replica.pop("active", 0):
            replica["succeeded"] = replica.get("succeeded", 0) + active


def _say(
    job: Object,
    status: Object,
    kind: str,
    suffix: str,
    words: str,
    times: Times,
    *,
    true: bool = True,
    only_new: bool = False,
) -> None:
    if only_new and any(c["type"] == kind for c in status.get("conditions") or []):
        return
    conditions.put(status, kind, true=true, reason=f"PyTorchJob{suffix}", message=_message(job, words), now=times.now)


def _message(job: Object, words: str) -> str:
    return f"PyTorchJob {namespace_of(job)}/{name_of(job)} {words}"
