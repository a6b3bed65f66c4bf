"""Finds trainings that hang, and does what their jobs want done then.

Their pace is learned from the progress that they report. One that has been silent for too long is looked at once more in the
log of its chief: a member or supervisor that passes on no reports is not a training that hangs. A tenant writes both, and only
what it wants done with its own job follows. Every pass of the sweep calls `review`.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from threading import BoundedSemaphore
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F, Max, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, Greatest
from structlog import get_logger

from fleet.changes import events
from fleet.db import clock, prepared
from fleet.db.prepared import TIME, Param
from fleet.errors import InvalidInput
from fleet.member.errors import MemberError
from fleet.models import Cluster, Pod
from fleet.services.members import impersonation, member_clients, pod_logs
from fleet.services.operations import webhooks
from jobs.core.failover.hang_policy import HangPolicy, OnHang, parse_on_hang
from jobs.core.failover.rules import Outcome
from jobs.core.manifest_fields import Faults
from jobs.core.reasons import Code, Reason
from jobs.events import record_event
from jobs.kinds import registry
from jobs.models import Hang, Job, Notice, Pace, Progress
from jobs.runtime import hangs
from jobs.services.failover import failover
from jobs.services.lifecycle.locks import lock_jobs
from jobs.services.submission.changes import restarts

log = get_logger(__name__)

_BATCH = 500
_LOOK_AGAIN = timedelta(seconds=30)
"""After a member that did not answer."""
_SETTLES = timedelta(minutes=2)
"""How long after the deadline of a notice the pods that stay may take to go on."""
_AT_ONCE = 2
_places = BoundedSemaphore(_AT_ONCE)
_NOTIFY_AFTER = tuple(timedelta(seconds=s) for s in (10, 60, 600, 3600))
"""Waits between calls of a webhook that is not taken; then it is given up."""
_LONGEST_WAIT = timedelta(seconds=hangs.LONGEST_S) + timedelta(days=1)
_HOUR, _MOST_AN_HOUR = timedelta(hours=1), 10
_KEPT = 100
"""Rows of one job, the latest."""
_ACTS = (HangPolicy.RESTART, HangPolicy.RELAUNCH)
_UNPROVEN = "its log does not say that it is silent, and no other job of its cluster reports: its reports may be lost"
_LEARNED = ("step", "saved_step", "mean_s", "saving_s", "longest_save_s")
_WRITTEN = (*_LEARNED, "step_at", "seen_at", "due_at")


def review(now: datetime) -> None:
    """Takes over what was reported, and requests a look at trainings that are silent for too long."""
    if _ANY_FRESH.values():
        _learn(now)
    for (uid,) in _DUE.values(**_times_of_due(now)):
        events.enqueue("jobs.check_hang", str(uid))
    for (pk,) in _TO_NOTIFY.values(**_times_to_notify(now)):
        events.enqueue("jobs.notify_hang", pk)


def exist() -> bool:
    """Whether a pace is judged by the clock, or a webhook waits."""
    return bool(_ANY_JUDGED.values() or _ANY_WEBHOOK.values())


_ANY_JUDGED = prepared.Rows(lambda _: Pace.objects.filter(due_at__isnull=False).order_by().values_list("pk")[:1])
_ANY_WEBHOOK = prepared.Rows(
    lambda _: Hang.objects.filter(notify_due_at__isnull=False).order_by().values_list("pk")[:1]
)


@transaction.atomic
def _learn(now: datetime) -> None:
    reports = list(
        _fresh().order_by("reported_at").values("job_id", "attempt", "step", "saved_step", "reported_at")[:_BATCH]
    )
    keys = {(row["job_id"], row["attempt"]) for row in reports}
    known = {(pace.job_id, pace.attempt): pace for pace in Pace.objects.filter(job__in=[pk for pk, _ in keys])}
    wanted = _wanted([pk for pk, _ in keys])
    rows = [
        _after(known.get((row["job_id"], row["attempt"])), row, wanted[row["job_id"]], now)
        for row in reports
        if row["job_id"] in wanted  # not deleted since
    ]
    Pace.objects.bulk_create(rows, update_conflicts=True, unique_fields=["job", "attempt"], update_fields=_WRITTEN)
    _end_hangs({(row.job_id, row.attempt): row for row in rows})


def _fresh() -> QuerySet[Progress]:
    """Reports of running attempts that are not taken over yet."""
    mine = Pace.objects.filter(job=OuterRef("job_id"), attempt=OuterRef("attempt"))
    running = Progress.objects.filter(job__state=Job.State.RUNNING, job__attempt=F("attempt"), step__isnull=False)
    return running.annotate(seen=Subquery(mine.values("seen_at")[:1])).filter(
        Q(seen=None) | Q(seen__lt=F("reported_at"))
    )


_ANY_FRESH = prepared.Rows(lambda _: _fresh().order_by().values_list("pk")[:1])


def _wanted(jobs: list[int]) -> Mapping[int, OnHang]:
    rows = Job.objects.filter(pk__in=jobs).values_list("pk", "manifest__metadata__annotations")
    return {pk: parse_on_hang(annotations, Faults()) for pk, annotations in rows}


def _after(row: Pace | None, report: Mapping[str, Any], wanted: OnHang, now: datetime) -> Pace:
    """By the fleet's clock, whatever the member's says."""
    at = now.timestamp()
    if row is None:
        pace = hangs.first(report["step"], report["saved_step"], at)
    else:
        pace = _pace(row).after(report["step"], report["saved_step"], at)
    limit_s = pace.limit_s(wanted.least_s)
    is_known = row is not None and row.due_at is None and row.mean_s is not None and pace.at == row.step_at.timestamp()
    due_at = None if limit_s is None or is_known else _time(pace.at + limit_s)
    fields = {name: getattr(pace, name) for name in _LEARNED}
    job, attempt = report["job_id"], report["attempt"]
    return Pace(
        job_id=job, attempt=attempt, step_at=_time(pace.at), seen_at=report["reported_at"], due_at=due_at, **fields
    )


def _pace(row: Pace) -> hangs.Pace:
    return hangs.Pace(at=row.step_at.timestamp(), **{name: getattr(row, name) for name in _LEARNED})


def _end_hangs(paces: Mapping[tuple[int, int], Pace]) -> None:
    """Of these, those that make steps again."""
    lasting = Hang.objects.filter(job__in=[pk for pk, _ in paces], over_at=None).select_related("job")
    for hang in lasting:
        pace = paces.get((hang.job_id, hang.attempt))
        is_over = pace is not None and pace.step_at > hang.since and pace.step != hang.step
        if pace and is_over and Hang.objects.filter(pk=hang.pk, over_at=None).update(over_at=pace.step_at):
            record_event(hang.job, "HangOver", f"makes steps again: {pace.step}", pace.step_at)


def _due(now: Any, beyond: Any) -> QuerySet[Pace]:
    """Silent for too long, while it could report: not while it leaves, waits, or its cluster is not seen as it is."""
    able = Q(job__state=Job.State.RUNNING, job__attempt=F("attempt"), job__suspended=False, job__reclaim__isnull=True)
    kept = Q(job__deleting_at__isnull=True)
    seen = Q(job__cluster__state=Cluster.State.READY, job__cluster__stale_since__isnull=True)
    over = Q(due_at__lte=now) | Q(due_at__gt=beyond)
    return Pace.objects.filter(able, kept, seen, over).order_by("due_at")


def _times_of_due(now: datetime) -> dict[str, datetime]:
    """A time beyond any wait is from before the clock was set back."""
    return {"now": now, "beyond": now + _LONGEST_WAIT + clock.STEP}


def _jobs_due(param: Param) -> QuerySet[Pace, Any]:
    return _due(param("now", TIME), param("beyond", TIME)).values_list("job__uid")[:_BATCH]


_DUE = prepared.Rows(_jobs_due)


def check(job_uid: UUID, now: datetime) -> bool:
    """Looks at a training that is silent for too long. Returns whether it hangs. Idempotent."""
    pace = _due(**_times_of_due(now)).filter(job__uid=job_uid).select_related("job", "job__cluster").first()
    if pace is None or not _places.acquire(blocking=False):
        return False
    try:
        again = Pace.objects.filter(pk=pace.pk, due_at=pace.due_at).update(due_at=now + _LOOK_AGAIN)
        return bool(again) and _check(pace, now)
    finally:
        _places.release()


def _check(pace: Pace, now: datetime) -> bool:
    noticed = Notice.objects.filter(job=pace.job_id, attempt=pace.attempt)
    # The deadline is by the clock of the member, which may be behind.
    asked = noticed.aggregate(stopped=Max("stopped_at"), until=Max(Greatest("deadline", Coalesce("until", "deadline"))))
    if asked["stopped"]:
        return False  # it was asked to save its work and to leave
    wanted = parse_on_hang(pace.job.manifest["metadata"].get("annotations"), Faults())
    limit = timedelta(seconds=_pace(pace).limit_s(wanted.least_s) or wanted.least_s)
    heard = _heard(pace, asked["until"], now)
    waits = Pace.objects.filter(pk=pace.pk, seen_at=pace.seen_at)
    if heard < limit:
        waits.update(due_at=now + limit - heard, step_at=min(pace.step_at, now))
        return False
    try:
        said = _signs(pace.job)
    except MemberError as e:
        log.info("no log to find a hang by", job=str(pace.job), error=e.message)
        return False
    says_so = said.silent_step is not None and said.silent_step >= pace.step
    if said.written_at and now - said.written_at < limit and not says_so:
        waits.update(due_at=min(said.written_at, now) + limit)
        return False
    if says_so or wanted.policy not in _ACTS:
        return _found(pace, wanted, now, is_proven=True)
    return _found_with_others(pace, wanted, limit, heard, now)


def _heard(pace: Pace, noticed_until: datetime | None, now: datetime) -> timedelta:
    """How long it has been silent while its cluster was watched, and after what a notice to some of its pods began.

    A step that is yet to come is of a clock that was wrong: its silence begins now.
    """
    begin = max(pace.step_at, noticed_until + _SETTLES) if noticed_until else pace.step_at
    return pace.job.cluster.freshness.observed_for(begin, now) if pace.job.cluster else timedelta()


def _found_with_others(pace: Pace, wanted: OnHang, limit: timedelta, heard: timedelta, now: datetime) -> bool:
    """Restarts nothing for a silence that may be that of the supervisor, of which a cluster full of jobs is silent at once.

    It is the job's own where steps of another job arrive when its own should have, and still do when it has had the time to
    report, too: a supervisor that has just come back hears one job before the other.
    """
    hang = Hang.objects.filter(job=pace.job_id, attempt=pace.attempt, since=pace.step_at).first()
    settles = max(_LOOK_AGAIN, timedelta(seconds=2 * (pace.mean_s or 0)))
    after, waited = (hang.found_at + settles / 2, now - hang.found_at) if hang else (pace.step_at + limit / 2, heard)
    others = Pace.objects.filter(job__cluster=pace.job.cluster_id, job__attempt=F("attempt")).exclude(job=pace.job_id)
    arrive = others.filter(step_at__gt=after, step_at__lte=now).exists()
    if not arrive and waited < 2 * limit:
        return False  # looked at again soon
    is_proven = arrive and hang is not None and waited >= settles
    return _found(pace, wanted, now, is_proven=is_proven, again_at=now + settles if arrive and not is_proven else None)


def _signs(job: Job) -> hangs.Signs:
    """What the log of its chief says. Raises MemberError."""
    chief = registry.kind_of(job.api_version, job.kind).primary_role(role["name"] for role in job.roles)
    pods = Pod.objects.filter(job_uid=job.uid, attempt=job.attempt).select_related("cluster").order_by("role", "index")
    pod = pods.filter(role=chief).first() or pods.first()
    if pod is None:
        return hangs.Signs()
    client = member_clients.client(pod.cluster, timeout_s=pod_logs.ANSWER_S)
    client = impersonation.in_name_of_author(client, pod.cluster, job.submitted_by)
    return hangs.signs(pod_logs.text(client, pod, timestamps=True))


@transaction.atomic
def _found(pace: Pace, wanted: OnHang, now: datetime, *, is_proven: bool, again_at: datetime | None = None) -> bool:
    """Records it once, and does what the job wants, if it has not left or made a step meanwhile.

    With ``again_at`` nothing is done yet: it is looked at again then.
    """
    if not lock_jobs(Job.objects.filter(pk=pace.job_id)):
        return False
    job = Job.objects.select_related("cluster", "policy").get(pk=pace.job_id)
    silent = Pace.objects.filter(pk=pace.pk, step=pace.step, step_at=pace.step_at)
    able = job.state == Job.State.RUNNING and job.attempt == pace.attempt and not job.suspended
    able = able and job.deleting_at is None and job.reclaim is None
    if not able or not silent.update(due_at=again_at):
        return False
    if _are_many(pace, now):
        silent.update(due_at=now + _HOUR / _MOST_AN_HOUR)
        return False
    notified = now if settings.CONVOY_HANG_WEBHOOK.url and wanted.policy is not HangPolicy.LOG else None
    hang, is_new = Hang.objects.get_or_create(
        job=job, attempt=pace.attempt, since=pace.step_at,
        defaults={"step": pace.step, "found_at": now, "policy": wanted.policy.value, "notify_due_at": notified},
    )  # fmt: skip
    message = f"hangs: no step after {pace.step} for {(now - pace.step_at).total_seconds():.0f} s ({wanted.policy})"
    if is_new:
        Hang.objects.filter(pk__in=list(job.hangs.order_by("-pk").values_list("pk", flat=True)[_KEPT:])).delete()
        record_event(job, "Hung", message, now, warning=True)
        if notified:
            events.enqueue("jobs.notify_hang", hang.pk)
    if is_proven:
        _act(job, wanted.policy, message, now)
    elif again_at is None:
        _leave_alone(job, _UNPROVEN, now)
    return True


def _are_many(pace: Pace, now: datetime) -> bool:
    """Whether others of the job were found in the last hour, as many as are worth an event and a call of the webhook."""
    latest = Hang.objects.filter(job=pace.job_id, found_at__gt=now - _HOUR, found_at__lte=now)
    return latest.exclude(attempt=pace.attempt, since=pace.step_at).count() >= _MOST_AN_HOUR


def _act(job: Job, policy: HangPolicy, message: str, now: datetime) -> None:
    if policy is HangPolicy.RELAUNCH and not job.shares:
        failover.leave(job, Outcome.FAILED, Reason(Code.APPLICATION_UNHEALTHY, message), now)
    elif policy in _ACTS:
        why = restarts.refusal(job, job.cluster)
        if not why:
            try:
                restarts.restart(job, job.roles, by="its policy for hangs", now=now)
            except InvalidInput as e:
                why = str(e)
        if why:
            _leave_alone(job, why, now)


def _leave_alone(job: Job, why: str, now: datetime) -> None:
    record_event(job, "NotRestarted", f"its pods are not restarted: {why}"[:1024], now, warning=True)


def _to_notify(now: Any, beyond: Any) -> Q:
    return Q(notify_due_at__lte=now) | Q(notify_due_at__gt=beyond)


def _times_to_notify(now: datetime) -> dict[str, datetime]:
    """A time beyond any wait is from before the clock was set back."""
    return {"now": now, "beyond": now + _NOTIFY_AFTER[-1] + clock.STEP}


def _hangs_to_notify(param: Param) -> QuerySet[Hang, Any]:
    return Hang.objects.filter(_to_notify(param("now", TIME), param("beyond", TIME))).values_list("pk")[:_BATCH]


_TO_NOTIFY = prepared.Rows(_hangs_to_notify)


def notify(pk: int, now: datetime) -> bool:
    """Calls the webhook about a hang. Returns whether it took the call."""
    hang = Hang.objects.filter(_to_notify(**_times_to_notify(now)), pk=pk).select_related("job", "job__cluster").first()
    if hang is None:
        return False
    wait = _NOTIFY_AFTER[min(hang.notify_tries, len(_NOTIFY_AFTER) - 1)]
    claimed = Hang.objects.filter(pk=pk, notify_due_at=hang.notify_due_at)
    if not claimed.update(notify_due_at=now + wait, notify_tries=F("notify_tries") + 1):
        return False
    try:
        webhooks.call(settings.CONVOY_HANG_WEBHOOK, _document(hang), now)
    except webhooks.NotTaken as e:
        log.warning("a hang was not notified", job=str(hang.job), error=str(e), tries=hang.notify_tries + 1)
        if hang.notify_tries + 1 > len(_NOTIFY_AFTER):
            Hang.objects.filter(pk=pk).update(notify_due_at=None)
        return False
    Hang.objects.filter(pk=pk).update(notify_due_at=None)
    return True


def _document(hang: Hang) -> dict[str, Any]:
    job = hang.job
    return {
        "event": "hang", "id": hang.pk, "job": str(job.uid), "kind": job.kind, "namespace": job.namespace, "name": job.name,
        "cluster": str(job.cluster or ""), "attempt": hang.attempt, "step": hang.step, "since": hang.since.isoformat(),
        "found_at": hang.found_at.isoformat(), "policy": hang.policy,
    }  # fmt: skip


def _time(moment: float) -> datetime:
    return datetime.fromtimestamp(moment, UTC)
