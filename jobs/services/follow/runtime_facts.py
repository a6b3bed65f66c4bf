"""Stores what the runtimes of running jobs say: reads the ends of their pods' logs every so often, and once a pod has failed.

A worker reads the logs through the API of the member in the name of the job's author, few attempts at a time. What is missed is
found by the sweep. What a log says never ends a job and gives it nothing; a node that failed the check of the runtime is
excluded for the job. dlrover deletes a worker that failed, with its log, soon after: so its failure is a hint.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from threading import BoundedSemaphore
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from structlog import get_logger

from fleet.changes import events
from fleet.db import bulk, clock, prepared
from fleet.db.prepared import TIME, Param
from fleet.member.errors import MemberAway, MemberError
from fleet.models import Cluster, Event, Pod
from fleet.services.members import impersonation, member_clients, pod_logs
from jobs.events import job_event
from jobs.kinds import registry
from jobs.models import Attempt, Job, RuntimeFact
from jobs.runtime import dlrover, facts
from jobs.runtime.fact import Fact, Kind, by_key
from jobs.services.failover import node_faults
from jobs.services.lifecycle.locks import lock_jobs

log = get_logger(__name__)

PERIOD = timedelta(seconds=30)
"""Between two looks at an attempt of few pods; more pods are looked at less often."""
_LONGEST = 5 * PERIOD
_PODS = 32
_AT_ONCE = 2
_BATCH = 20
_MOST = 300
"""Facts that one look takes, the latest; fewer than are kept, so that none that was dropped is taken for a new one."""
_EVENTS_A_LOOK, _EVENTS_AN_HOUR = 10, 60
_FEW_NODES = 3
"""Among so many nodes dlrover's check does not show which one is faulty: all of a group that fails leave."""
_places = BoundedSemaphore(_AT_ONCE)


def run(job_uid: UUID, number: int, now: datetime) -> bool:
    """Reads what one attempt says, if it is due and no other worker does. Returns whether it did."""
    attempt = (
        Attempt.objects.filter(
            clock.is_due("facts_due_at", **clock.due_times(now, _LONGEST)), job__uid=job_uid, number=number
        )
        .select_related("job")
        .first()
    )
    if attempt is None or not _places.acquire(blocking=False):
        return False
    try:
        return _read(attempt, now)
    finally:
        _places.release()


def request_due(now: datetime) -> None:
    """Enqueues attempts that are due, and those whose task was lost or found no place."""
    for uid, number in _DUE.values(**clock.due_times(now, _LONGEST)):
        events.enqueue("jobs.read_runtime", str(uid), number)


def hurry(jobs: Mapping[UUID, Job], changed: Collection[tuple[UUID, int]], now: datetime) -> None:
    """Lets the attempts be read at once of which a pod has failed that their runtime deletes, with its log, and replaces."""
    replacing = {job.uid for job in jobs.values() if registry.kind_of(job.api_version, job.kind).replaces_pods}
    keys = {key for key in changed if key[0] in replacing}
    if not keys:
        return
    uids = {uid for uid, _ in keys}
    failed = Pod.objects.filter(job_uid__in=uids, phase="Failed").order_by().values_list("job_uid", "attempt", "uid")
    waiting = Attempt.objects.filter(job__uid__in=uids, facts_due_at__gt=now)
    for pk, uid, number, seen in list(waiting.values_list("pk", "job__uid", "number", "facts_of")):
        ended = [pod for of_job, attempt, pod in failed if (of_job, attempt) == (uid, number)]
        if (uid, number) in keys and ended and _digest(ended) != seen:
            Attempt.objects.filter(pk=pk, facts_due_at__gt=now).update(facts_due_at=now)
            events.enqueue("jobs.read_runtime", str(uid), number)


def _due(param: Param) -> QuerySet[Attempt, Any]:
    is_due = clock.is_due("facts_due_at", param("now", TIME), param("beyond", TIME))
    return Attempt.objects.filter(is_due).order_by("facts_due_at").values_list("job__uid", "number")[:_BATCH]


_DUE = prepared.Rows(_due)


def _read(attempt: Attempt, now: datetime) -> bool:
    pods = _pods(attempt)
    if not _claim(attempt, pods, now):
        return False
    observed: list[tuple[Pod, Fact]] = []
    try:
        for pod in pods[:_PODS]:
            observed += [(pod, fact) for fact in _of_pod(pod, attempt.job.submitted_by)]
    except MemberAway as e:  # it would keep this worker waiting for each pod
        log.info("a member does not answer", cluster=attempt.cluster_name, error=e.message)
    observed.sort(key=lambda each: each[1].at or now)
    _store(attempt, observed[-_MOST:], now)
    return True


def _pods(attempt: Attempt) -> list[Pod]:
    """Those that have failed first, then the master's, then by role and index."""
    rows = Pod.objects.filter(job_uid=attempt.job.uid, attempt=attempt.number).select_related("cluster")
    return sorted(
        rows, key=lambda pod: (pod.phase != "Failed", "master" not in pod.role, pod.role, pod.index, pod.name)
    )


def _claim(attempt: Attempt, pods: Sequence[Pod], now: datetime) -> bool:
    """Moves the next look into the future, so that only this worker makes this one. An attempt that has ended has none."""
    following = now + min(PERIOD * (1 + len(pods) // 8), _LONGEST) if attempt.ended_at is None else None
    failed = _digest(pod.uid for pod in pods if pod.phase == "Failed")
    unclaimed = Attempt.objects.filter(pk=attempt.pk, facts_due_at=attempt.facts_due_at)
    return unclaimed.update(facts_due_at=following, facts_of=failed) == 1


def _digest(uids: Iterable[str]) -> str:
    return sha256(" ".join(sorted(uids)).encode()).hexdigest()


def _of_pod(pod: Pod, author: str) -> list[Fact]:
    """What one pod says; nothing if its log cannot be read. Raises `MemberAway`."""
    if pod.cluster.state != Cluster.State.READY or pod.phase == "Pending":
        return []
    try:
        client = member_clients.client(pod.cluster, timeout_s=pod_logs.ANSWER_S)
        client = impersonation.in_name_of_author(client, pod.cluster, author)
        stated = facts.read(pod_logs.text(client, pod, timestamps=True), pod.name)
        return [fact for fact in stated if fact.at and (fact.pod == pod.name or "master" in pod.role)]
    except MemberAway:
        raise
    except MemberError as e:
        log.info("no log of a runtime", pod=str(pod), cluster=pod.cluster.name, error=e.message)
        return []


@transaction.atomic
def _store(attempt: Attempt, observed: Sequence[tuple[Pod, Fact]], now: datetime) -> None:
    lock_jobs(Job.objects.filter(pk=attempt.job_id))
    job = Job.objects.filter(pk=attempt.job_id).first()
    if job is None or not observed:
        return
    stored = RuntimeFact.objects.filter(job=job, attempt=attempt.number)
    known = dict(stored.values_list("key", "data"))
    keyed = by_key(fact for _, fact in observed)
    new = [fact for key, fact in keyed.items() if key not in known]
    # The step of a checkpoint in memory is only certain once the one after it is there: those are written again.
    rows = [
        _row(job, attempt.number, key, fact, now)
        for key, fact in keyed.items()
        if key not in known or (_may_change(fact) and known[key] != _data(fact, now))
    ]
    bulk.upsert(rows, ["job", "attempt", "key"], ["data"])
    _forget(job)
    pods = {pod.name: pod for pod, _ in observed}
    failed = {f.pod: f for f in new if f.kind is Kind.FAILED and f.message.startswith(dlrover.CHECK_ERROR)}
    for name in sorted(failed.keys() & pods.keys()):  # once a pod, however often its log says so
        _exclude(attempt, job, pods[name], failed[name], now)
    _record_events(job, new, now)


def _may_change(fact: Fact) -> bool:
    return fact.kind is Kind.CHECKPOINT and fact.tier == "memory"


def _row(job: Job, attempt: int, key: str, fact: Fact, now: datetime) -> RuntimeFact:
    return RuntimeFact(job=job, attempt=attempt, key=key, at=fact.at or now, data=_data(fact, now))


def _data(fact: Fact, now: datetime) -> dict[str, Any]:
    return fact.as_json() | {"kind": fact.kind.value, "at": (fact.at or now).isoformat()}


def _forget(job: Job) -> None:
    """Keeps the latest."""
    latest = RuntimeFact.objects.filter(job=job).order_by("-at", "-pk").values_list("pk", flat=True)
    if older := list(latest[RuntimeFact.KEPT : RuntimeFact.KEPT + _MOST]):
        RuntimeFact.objects.filter(pk__in=older).delete()


def _record_events(job: Job, new: Iterable[Fact], now: datetime) -> None:
    """Adds what is worth a line to the timeline, within bounds: a tenant may write without end."""
    lines = {(fact.kind, words): None for fact in new for words in _words(fact)}
    if not lines:
        return
    recent = Event.objects.filter(regarding_uid=str(job.uid), reason__startswith="Runtime")
    left = _EVENTS_AN_HOUR - recent.filter(last_at__gt=now - timedelta(hours=1)).count()
    allowed = list(lines)[-_EVENTS_A_LOOK:][: max(left, 0)]
    events.record_all(
        [job_event(job, f"Runtime{kind.value}", words, warning=kind in _WARNINGS) for kind, words in allowed], now
    )


_WARNINGS = (Kind.RESTART, Kind.RELAUNCH, Kind.NODE_CHECK, Kind.STRAGGLER, Kind.FAILED)


def _words(fact: Fact) -> Iterator[str]:
    """The line of the timeline; none for what every rank reports alike, or all the time."""
    why = f": {fact.message}" if fact.message else ""
    match fact.kind:
        case Kind.RENDEZVOUS if fact.rank == 0 and not fact.message:
            took = "" if fact.seconds is None else f" after {fact.seconds:g} s"
            number = "" if fact.round is None else f" {fact.round}"
            yield f"rendezvous{number}: a world of {fact.world_size}{took}"
        case Kind.RESTART:
            yield f"{fact.pod} starts its processes again{_budget(fact)}{why}"
        case Kind.RELAUNCH:
            yield f"{fact.pod} is {fact.message or 'replaced'}{_budget(fact)}"
        case Kind.NODE_CHECK if fact.ok is False:
            yield f"{fact.pod}: round {fact.round} of the node check failed{why}"
        case Kind.STRAGGLER:
            yield f"rank {fact.rank} is slow in the node check"
        case Kind.FAILED:
            yield f"{fact.pod} ends{why}"


def _budget(fact: Fact) -> str:
    if fact.restarts is None or fact.remaining is None:
        return ""
    return f" ({fact.restarts} before, {fact.remaining} left)"


def _exclude(attempt: Attempt, job: Job, pod: Pod, fact: Fact, now: datetime) -> None:
    """Excludes the pod's node for the job: its agent left because the check found it faulty or slow."""
    if not pod.node:
        return
    same_role = Pod.objects.filter(job_uid=job.uid, attempt=attempt.number, role=pod.role)
    if same_role.values("index").distinct().count() <= _FEW_NODES:
        words = f"the check of {_FEW_NODES} nodes or fewer does not show which is faulty: {pod.node} is not excluded"
        events.record_all([job_event(job, "RuntimeNodeCheck", words)], now)
        return
    is_slow = dlrover.STRAGGLES in fact.message
    node_faults.shown_by_check(job, attempt.number, pod.node, fact.message, now, is_slow=is_slow)
