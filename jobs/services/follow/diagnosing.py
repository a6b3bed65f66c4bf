"""Diagnoses failed attempts: reads the end of the logs of the pods that ended first, once, and stores what they say.

`jobs.services.failover.evidence` asks for it when it records a cause. A worker reads the logs through the API of the member, at
most `_AT_ONCE` attempts at a time, so that members that are slow or away keep no other work waiting. What is not read now is
found by the sweep. A log is read while the pods exist: later, the message that Kubernetes keeps of a container has to do.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from threading import BoundedSemaphore
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, QuerySet
from structlog import get_logger

from fleet.changes import events
from fleet.core.members.pods import pod_details
from fleet.db import clock, prepared
from fleet.db.prepared import TIME, Param
from fleet.member.errors import MemberAway, MemberError
from fleet.models import Cluster, Pod
from fleet.services.members import impersonation, member_clients, pod_logs
from jobs.core.failover import node_check, symptoms
from jobs.core.failover.causes import Cause, Failure, PodEnd
from jobs.core.failover.diagnosis import Class, Diagnosis, diagnose
from jobs.core.failover.rules import Outcome
from jobs.core.failover.symptoms import Finding, Symptom
from jobs.core.reasons import Code, Reason
from jobs.events import announce_jobs, record_event
from jobs.models import Attempt, Job
from jobs.services.failover import evidence, failover, node_faults
from jobs.services.lifecycle.locks import lock_jobs

log = get_logger(__name__)

_PODS = 3
"""Logs that are read for one attempt: those of the pods that ended first. The others ended because of them."""
_AT_ONCE = 2
_BATCH = 20
_RETRY_AFTER = (timedelta(seconds=5), timedelta(seconds=20), timedelta(seconds=60))
"""After a member did not answer; then the pods have to do."""
_LONGEST_WAIT = max(_RETRY_AFTER)
_places = BoundedSemaphore(_AT_ONCE)

PodFinding = tuple[PodEnd, Finding]


def run(job_uid: UUID, number: int, now: datetime) -> bool:
    """Diagnoses one attempt if its logs are to be read, and no other worker reads them. Returns whether it did."""
    attempt = (
        Attempt.objects.filter(
            clock.is_due("log_due_at", **clock.due_times(now, _LONGEST_WAIT)), job__uid=job_uid, number=number
        )
        .select_related("job")
        .first()
    )
    if attempt is None or not _places.acquire(blocking=False):
        return False
    try:
        return _claim(attempt, now) and _diagnose(attempt, now)
    finally:
        _places.release()


def request_due(now: datetime) -> None:
    """Enqueues attempts whose task was lost or found no place."""
    for uid, number in _DUE.values(**clock.due_times(now, _LONGEST_WAIT)):
        events.enqueue("jobs.diagnose", str(uid), number)


def _due(param: Param) -> QuerySet[Attempt, Any]:
    is_due = clock.is_due("log_due_at", param("now", TIME), param("beyond", TIME))
    return Attempt.objects.filter(is_due).order_by("log_due_at").values_list("job__uid", "number")[:_BATCH]


_DUE = prepared.Rows(_due)


def _claim(attempt: Attempt, now: datetime) -> bool:
    """Moves the next try into the future, so that only this worker makes this one. If it dies, the next try is made."""
    retry = now + _RETRY_AFTER[min(attempt.log_tries, len(_RETRY_AFTER) - 1)]
    unclaimed = Attempt.objects.filter(pk=attempt.pk, log_due_at=attempt.log_due_at)
    attempt.log_due_at = retry
    return unclaimed.update(log_due_at=retry, log_tries=F("log_tries") + 1) == 1


def _diagnose(attempt: Attempt, now: datetime) -> bool:
    key = (attempt.job.uid, attempt.number)
    failure = evidence.failures([key])[key]
    if not failure.evidence:
        failure = _stored(attempt)
    is_last_try = attempt.log_tries >= len(_RETRY_AFTER)
    try:
        findings = _read(_ended_first(key), attempt.job.submitted_by, is_last_try=is_last_try)
    except MemberAway:
        return False
    _store(attempt, diagnose(failure, findings, attempt.message if _is_lost(attempt) else ""), now)
    return True


def _is_lost(attempt: Attempt) -> bool:
    return attempt.outcome == Outcome.LOST


def _stored(attempt: Attempt) -> Failure:
    """The failure as it was recorded, for an attempt whose pods are gone."""
    cause = Cause(attempt.cause) if attempt.cause in set(Cause) else Cause.UNKNOWN
    return Failure(cause, tuple(PodEnd(**{"phase": "", **pod}) for pod in attempt.evidence or []))


def _ended_first(key: tuple[UUID, int]) -> list[tuple[Pod, Mapping[str, Any]]]:
    """The pods that failed, those that ended first in front, each with the container that failed."""
    uid, number = key
    pods = Pod.objects.filter(job_uid=uid, attempt=number).select_related("cluster").order_by("role", "index", "name")
    failed = [(pod, _failed_container(pod)) for pod in pods if evidence.pod_end(pod).has_failed or _failed_check(pod)]
    return sorted(failed, key=lambda each: _ended_at(each[1]) or "9999")[:_PODS]


def _failed_check(pod: Pod) -> bool:
    return node_check.failed(pod_details.parse(pod.details)) is not None


def _failed_container(pod: Pod) -> Mapping[str, Any]:
    details = pod_details.parse(pod.details)
    containers: Sequence[Mapping[str, Any]] = details.get("containers") or []
    failed = (each for each in [*containers, *(details.get("initContainers") or [])])
    return next((each for each in failed if _termination(each).get("exitCode")), containers[0] if containers else {})


def _termination(container: Mapping[str, Any]) -> Mapping[str, Any]:
    """How the container ended, now or before its last restart."""
    ended = [(container.get(state) or {}).get("terminated") or {} for state in ("state", "lastState")]
    return next((each for each in ended if each.get("exitCode")), ended[0])


def _ended_at(container: Mapping[str, Any]) -> str:
    return str(_termination(container).get("finishedAt") or "")


def _read(pods: Sequence[tuple[Pod, Mapping[str, Any]]], author: str, *, is_last_try: bool) -> list[PodFinding]:
    findings = []
    for pod, container in pods:
        finding = _of_log(pod, container, author, is_last_try=is_last_try) or _of_message(_termination(container))
        if finding:
            findings.append((evidence.pod_end(pod), finding))
    return findings


def _of_log(pod: Pod, container: Mapping[str, Any], author: str, *, is_last_try: bool) -> Finding | None:
    """What the log says. None if it says nothing or there is none; raises `MemberAway` if it may be read later."""
    if pod.cluster.state != Cluster.State.READY:
        return None
    has_restarted = not (container.get("state") or {}).get("terminated") and bool(container.get("restartCount"))
    try:
        client = member_clients.client(pod.cluster, timeout_s=pod_logs.ANSWER_S)
        client = impersonation.in_name_of_author(client, pod.cluster, author)
        return symptoms.read(
            pod_logs.text(client, pod, container=str(container.get("name") or ""), previous=has_restarted)
        )
    except MemberAway as e:
        if not is_last_try:
            raise
        log.warning("no log for a diagnosis", pod=str(pod), cluster=pod.cluster.name, error=e.message)
    except MemberError as e:
        log.info("no log for a diagnosis", pod=str(pod), cluster=pod.cluster.name, error=e.message)
    return None


def _of_message(termination: Mapping[str, Any]) -> Finding | None:
    """What the container's termination message says: its own words, or the end of its log (``FallbackToLogsOnError``)."""
    text = str(termination.get("message") or "")
    if finding := symptoms.read(text):
        return finding
    words = " ".join("".join(char if char.isprintable() else " " for char in text).split())[:300]
    return Finding(Symptom.EXITED, words) if words else None


@transaction.atomic
def _store(attempt: Attempt, diagnosis: Diagnosis, now: datetime) -> None:
    job = Job.objects.select_related("cluster", "policy").get(pk=attempt.job_id)
    lock_jobs(Job.objects.filter(pk=job.pk))
    job.refresh_from_db(fields=["state", "reason", "attempt", "shares"])
    # Only while the claim stands: another worker may have diagnosed it meanwhile, or it failed anew.
    if not Attempt.objects.filter(pk=attempt.pk, log_due_at=attempt.log_due_at).update(log_due_at=None):
        return
    mine = Attempt.objects.filter(pk=attempt.pk).exclude(cause="")
    if not mine.update(diagnosis=diagnosis.as_json()):
        return  # the attempt runs again, or has succeeded after all
    mine.filter(cause__in=evidence.WEAK).update(cause=diagnosis.cause, incident=None)
    _explain(job, attempt, diagnosis, now)
    ended = "was lost" if _is_lost(attempt) else "failed"
    record_event(job, "Diagnosed", f"attempt {attempt.number} {ended}: {diagnosis.summary}"[:1024], now, warning=True)
    # Before the job restarts: the next cycle must not place it on the node again.
    node_faults.shown_by_log(job, attempt.number, diagnosis, now)
    if diagnosis.kind is Class.INFRASTRUCTURE and not job.shares and job.attempt == attempt.number:
        _restart_at_once(job, diagnosis, now)


def _explain(job: Job, attempt: Attempt, diagnosis: Diagnosis, now: datetime) -> None:
    """Puts the diagnosis in front of the reason of a job that has failed, or is about to be moved, by this attempt."""
    is_about_it = job.state in (Job.State.FAILED, Job.State.BACKOFF) and (job.shares or job.attempt == attempt.number)
    if not job.reason or not is_about_it:
        return
    message = f"{diagnosis.summary}; {job.reason['message']}"
    job.reason = {**job.reason, "message": message, "cause": diagnosis.cause.value}
    announce_jobs([job], now, ["reason"])


def _restart_at_once(job: Job, diagnosis: Diagnosis, now: datetime) -> None:
    """Makes a job whose policy moves it leave now: its program has not failed, and waiting would not help."""
    if job.state == Job.State.BACKOFF:
        message = f"{diagnosis.summary} on {job.cluster}"
        failover.leave(job, Outcome.FAILED, Reason(Code.APPLICATION_UNHEALTHY, message), now)
