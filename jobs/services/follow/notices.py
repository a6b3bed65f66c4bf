"""What follows from notices that a member's supervisor gave: rows, another size, or another place in the queue.

`record` is called with each report of a copy, and writes rows only. `settle` decides afterwards, in a transaction for each job:
by a task as a hint, and by the sweep. An attempt that was asked to stop does not end its job, however its processes exit.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q, QuerySet

from fleet.changes import events
from fleet.db import bulk, clock, isolation, prepared
from fleet.db.prepared import TIME, UID, Param
from fleet.errors import InvalidInput
from fleet.models import Cluster, Pod
from jobs import metrics, snapshot
from jobs.core.division import shares as parts
from jobs.core.life.jobs import DIVIDED, JobState
from jobs.core.life.shares import ShareState
from jobs.core.resizing import after_reclaim
from jobs.events import job_event, record_event
from jobs.kinds.base import Manifest, Phase
from jobs.models import Attempt, Job, Notice
from jobs.runtime import notices
from jobs.runtime.notices import JobRecord, PodRecord, Scope, StopRequest
from jobs.runtime.progress import Progress
from jobs.services.follow import progress
from jobs.services.lifecycle import sizes
from jobs.services.lifecycle.locks import lock_jobs
from jobs.services.scheduling import loop
from jobs.services.scheduling.decisions import preemption
from jobs.services.submission.changes import resizing

Key = tuple[UUID, int]
AFTERWARDS = timedelta(minutes=2)
"""How long after the deadline the end of a copy still counts as its answer to a notice."""
REPLACED_WITHIN = timedelta(seconds=10)
"""How long the pods that left have for others to be bound in their place, before the job is made smaller."""
_LONGEST = timedelta(hours=1)
"""A notice that says to be longer is not believed to be, where the clock of its member is behind."""
MOST = 4096
"""Rows of one attempt: a member's record is not trusted to be sound."""
_KEPT = "it keeps its size: of fewer pods its operator would end the last, which run, and not those that left"
_KEPT_ALL = "it keeps its size: of fewer pods its operator would end any, also some that run, and not those that left"
_FIELDS = ("heard_at", "left_at", "saved_step", "stopped_at")


def record(cluster_id: int, copies: Iterable[tuple[Job, int, Manifest]], now: datetime) -> list[events.Line]:
    """Writes what the copies say of notices, and returns what is new for the timelines. The jobs are locked.

    It comes before `progress.record`: a report repeats its job's last checkpoint, which is new where that table has another.
    """
    reported = [(job, attempt, read, progress.of_copy(copy)) for job, attempt, copy in copies if (read := _read(copy))]
    if not reported:
        return []
    cluster = Cluster.objects.values_list("name", flat=True).get(pk=cluster_id)
    saved = progress.saved_steps(job for job, *_ in reported)
    lines: list[events.Line] = []
    for job, attempt, read, steps in reported:
        is_new = steps is not None and steps.saved_step != saved.get(job.pk)
        lines += _record(job, attempt, cluster, read, steps if is_new else None, now)
    return lines


def _read(copy: Manifest) -> dict[str, JobRecord]:
    meta = copy.get("metadata") or {}
    text = (meta.get("annotations") or {}).get(notices.NOTICES)
    return notices.read_records(text, str(meta.get("uid"))) if text else {}


def _record(
    job: Job, attempt: int, cluster: str, records: Mapping[str, JobRecord], steps: Progress | None, now: datetime
) -> list[events.Line]:
    """``steps``: the latest report, if it has a checkpoint that no report before had."""
    known = {(row.notice_id, row.pod): row for row in Notice.objects.filter(job=job, attempt=attempt)}
    new: list[Notice] = []
    changed: list[Notice] = []
    for one in records.values():
        saved = _saved_after(one, steps)
        for pod, entry in one.pods.items():
            row = known.get((one.notice.id, pod))
            if row is None and len(known) + len(new) < MOST:
                new.append(_row(job, attempt, cluster, one, pod, now))
                _take(new[-1], one, entry, saved, now)
            elif row is not None and _take(row, one, entry, saved, now):
                changed.append(row)
    Notice.objects.bulk_create(new, ignore_conflicts=True)
    bulk.update(changed, _FIELDS)
    if new or changed:
        events.enqueue("jobs.settle_notices", str(job.uid))
    return [_line(job, [row for row in new if row.notice_id == id]) for id in sorted({row.notice_id for row in new})]


def _row(job: Job, attempt: int, cluster: str, one: JobRecord, pod: str, now: datetime) -> Notice:
    about = one.notice
    length = min(timedelta(seconds=max(about.deadline - about.at, 0.0)), _LONGEST)
    # One that was over before the fleet heard of it is over by any clock.
    is_over = all(entry.left is not None for entry in one.pods.values())
    times = {"at": _time(about.at), "deadline": _time(about.deadline), "until": None if is_over else now + length}
    names = {"notice_id": about.id, "pod": pod, "cause": about.cause, "node": about.node, "scope": about.scope.value}
    return Notice(job=job, attempt=attempt, cluster_name=cluster, **names, **times)


def _saved_after(one: JobRecord, steps: Progress | None) -> int | None:
    """The step of the checkpoint that the job itself reported in answer to this notice."""
    about = one.notice
    if steps is None or not about.at <= steps.at <= about.deadline + AFTERWARDS.total_seconds():
        return None
    return steps.saved_step


def _take(row: Notice, one: JobRecord, entry: PodRecord, saved: int | None, now: datetime) -> bool:
    """Takes over what became known; a time that is known stays. Returns whether anything has.

    A pod has left by now, whatever the clock of its member says: what follows waits no longer for a clock that is ahead.
    """
    before = [getattr(row, name) for name in _FIELDS]
    row.heard_at = row.heard_at or _time(entry.heard)
    if row.left_at is None and entry.left is not None:
        row.left_at = min(datetime.fromtimestamp(entry.left, UTC), now)
        transaction.on_commit(partial(_count, row), robust=True)
    known = row.saved_step if row.saved_step is not None else saved
    row.saved_step = known if entry.step is None else entry.step
    row.stopped_at = row.stopped_at or _time(one.stopped)
    return before != [getattr(row, name) for name in _FIELDS]


def _count(row: Notice) -> None:
    cause = row.cause if row.cause in metrics.CAUSES_OF_NOTICES else "other"
    # SIGTERM is not answered: a process that saved has heard it.
    heard = row.heard_at is not None or row.saved_step is not None
    metrics.NOTICES.labels(cause, "heard" if heard else "unheard").inc()
    if heard and row.left_at:
        metrics.NOTICE_TO_SAVED_SECONDS.observe(max((row.left_at - row.at).total_seconds(), 0.0))


def _line(job: Job, rows: Sequence[Notice]) -> events.Line:
    first, names = rows[0], ", ".join(sorted(row.pod for row in rows)[:5])
    more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
    whom = "all pods, because too few would be left" if first.scope == Scope.JOB else f"{names}{more}"
    message = (
        f"{first.node or 'a place'} is reclaimed ({first.cause}); notice until {first.deadline:%H:%M:%S} UTC to {whom}"
    )
    return job_event(job, "ReclaimNotice", message, warning=True)


def _recent_notices(param: Param) -> QuerySet[Notice, Any]:
    # Also one of a time that is yet to come: the clock of its member is ahead, or that of the fleet was set back.
    # The other clock may be behind as well: then its deadline is over before the pods have left.
    recent = Q(deadline__gt=param("since", TIME)) | Q(until__gt=param("since", TIME)) | Q(stopped_at__isnull=False)
    rows = Notice.objects.filter(recent, job__uid__in=param("uids", UID)).order_by()
    return rows.values_list("job__uid", "attempt", "scope", "stopped_at", "at")


_RECENT_NOTICES = prepared.Rows(_recent_notices)


def attempts_asked_to_stop(keys: Iterable[Key], now: datetime) -> dict[Key, StopRequest]:
    """Which of these attempts were given notice so recently that their end is an answer to it."""
    wanted = set(keys)
    if not wanted:
        return {}
    scopes: dict[Key, Scope] = {}
    asked: dict[Key, datetime] = {}
    uids = list({uid for uid, _ in wanted})
    for uid, attempt, scope, stopped_at, at in _RECENT_NOTICES.values(uids=uids, since=now - AFTERWARDS):
        if scopes.get((uid, attempt)) is not Scope.JOB:
            scopes[uid, attempt] = Scope.JOB if stopped_at else Scope(scope)
        asked[uid, attempt] = min(asked.get((uid, attempt), at), at)
    complete = progress.ends({key: at for key, at in asked.items() if key in wanted})
    return {key: StopRequest(scope, complete.get(key)) for key, scope in scopes.items() if key in wanted}


def attempts_stopped_by_fleet(copies: Iterable[tuple[Job, int, Manifest]]) -> dict[Key, StopRequest]:
    """Which of these attempts, whose copies have ended, succeeded only after the fleet had stopped them.

    The copy says so: it is suspended, or being deleted, and the job is not to run there. A worker that stops a copy looks
    first whether it has succeeded, and names the version that it saw.
    """
    stopped = {(job.uid, attempt): copy for job, attempt, copy in copies if _is_stopped(job, attempt, copy)}
    if not stopped:
        return {}
    ended = Attempt.objects.filter(job__uid__in={uid for uid, _ in stopped}, ended_at__isnull=False)
    ends = {(uid, number): at for uid, number, at in ended.values_list("job__uid", "number", "ended_at") if at}
    asked = {key: _asked_at(ends[key], copy) for key, copy in stopped.items() if key in ends}
    # What the copy carries comes first: once a later attempt reports, the table has only that one's steps.
    complete = progress.ends(asked) | progress.ends_of_copies({key: (stopped[key], at) for key, at in asked.items()})
    return {key: StopRequest(Scope.JOB, complete.get(key)) for key in stopped}


def _is_stopped(job: Job, attempt: int, copy: Manifest) -> bool:
    if _is_to_run(job, attempt):
        return False
    kind = sizes.kind_of(job)
    if kind.read_status(copy.get("status") or {}, 0).phase is not Phase.SUCCEEDED:
        return False
    return bool(copy["metadata"].get("deletionTimestamp")) or kind.read(copy).suspended


def _is_to_run(job: Job, attempt: int) -> bool:
    if not job.shares:
        return job.attempt == attempt and job.state in Job.ON_MEMBER
    share = parts.find(job.shares, attempt)
    is_current = share is not None and share.state is not ShareState.LOST
    return is_current and job.state in DIVIDED and not job.suspended


def _asked_at(left_at: datetime, copy: Manifest) -> datetime:
    """When its pods were asked to stop: of a copy that ran on after the job had left its cluster, when that was removed."""
    deleted = copy["metadata"].get("deletionTimestamp")
    return max(left_at, datetime.fromisoformat(deleted)) if deleted else left_at


def is_answer(asked: StopRequest | None, phase: Phase) -> bool:
    """Whether this end is that of an attempt that was asked to stop.

    Where only some pods were, the others may succeed, unless their steps say that they left with those. A success after the
    last step is one, whatever was asked meanwhile.
    """
    if asked is None or (phase is Phase.SUCCEEDED and asked.is_complete):
        return False
    return asked.scope is Scope.JOB or phase is Phase.FAILED or asked.is_complete is False


def note_stopped(job: Job, attempt: int, phase: Phase, now: datetime) -> list[events.Line]:
    """The copy has ended by itself after its notice: nothing more is waited for. Returns what is new for its timeline.

    What was settled before was so for the pods that left; the end of all is yet to be.
    """
    rows = Notice.objects.filter(job=job, attempt=attempt, stopped_at__isnull=True)
    rows.update(stopped_at=now, settled_at=None)
    events.enqueue("jobs.settle_notices", str(job.uid))
    if phase is not Phase.SUCCEEDED:
        return []
    how_far = progress.words(job)
    message = f"its exit after it was asked to stop is not taken for its end: {how_far}; it goes on from its checkpoint"
    return [job_event(job, "StoppedByNotice", message)]


def unsettled() -> QuerySet[Notice]:
    """Notices of current attempts from which something follows yet."""
    ready = Q(stopped_at__isnull=False) | Q(scope=Scope.PODS, left_at__isnull=False)
    return Notice.objects.filter(ready, settled_at__isnull=True, attempt=F("job__attempt"))


def settle(now: datetime, uids: Iterable[UUID] | None = None) -> int:
    """Does what follows from notices, for all jobs or these; returns how many have changed."""
    jobs = _TO_SETTLE.objects() if uids is None else _jobs_of(unsettled().filter(job__uid__in=list(uids)))
    return sum(isolation.each("notices.settle", jobs, lambda job: _settle(job, now), now))


def _jobs_of(rows: QuerySet[Notice]) -> QuerySet[Job]:
    return Job.objects.filter(pk__in=rows.order_by().values("job_id"), deleting_at__isnull=True)


_TO_SETTLE = prepared.Rows(lambda _: _jobs_of(unsettled()))


@transaction.atomic
def _settle(job: Job, now: datetime) -> bool:
    if not lock_jobs(Job.objects.filter(pk=job.pk)):
        return False
    locked = Job.objects.select_related("cluster").get(pk=job.pk)
    rows = list(unsettled().filter(job=locked))
    stop = max((row for row in rows if row.stopped_at), key=lambda row: row.at, default=None)
    if locked.state not in Job.ON_MEMBER or not rows:
        return _close(rows, now)
    if stop is not None:
        few = (
            "too few of its pods would be left"
            if stop.scope == Scope.JOB
            else "it ended when some of its pods were asked to stop"
        )
        message = f"{stop.node or 'a place'} on {stop.cluster_name} was reclaimed ({stop.cause}) and {few}"
        preemption.evict_reclaimed(locked, message, now)
        _close(rows, now)
        loop.advance_evictions(now, [locked.uid])
        return True
    return _shrink(locked, rows, now)


def _shrink(job: Job, rows: Sequence[Notice], now: datetime) -> bool:
    """Gives the job the size that runs, once no pods come in the place of those that left, and asks for the former one.

    Not where its operator would end a pod that runs instead: it ends the last, and another one has left, or it ends any.
    """
    before, kind = sizes.in_force(job), sizes.kind_of(job)
    bound: dict[str, set[int]] = {role: set() for role in before}
    pods = Pod.objects.filter(job_uid=job.uid, attempt=job.attempt, phase__in=snapshot.LIVE, role__in=before)
    for role, index in pods.exclude(node="").values_list("role", "index"):
        bound[role].add(len(bound[role]) if kind.ends_any else index)
    missing = after_reclaim.missing(before, bound)
    fewer = after_reclaim.smaller(before, bound, ends_last=kind.ends_last, ends_any=kind.ends_any)
    last = max(row.left_at for row in rows if row.left_at)
    is_recent = -clock.STEP <= now - last < REPLACED_WITHIN
    if job.state != JobState.RUNNING or not missing:
        return not is_recent and _close(rows, now)
    if is_recent:
        return False
    if not fewer:
        record_event(job, "NotResized", _KEPT_ALL if kind.ends_any else _KEPT, now)
        return _close(rows, now)
    by = f"the reclaim of {rows[0].node or 'its place'}"
    former = sizes.asked_for(job)
    try:
        with transaction.atomic():
            resizing.request(job, {**before, **fewer}, by=by, now=now)
            resizing.request(job, former, by=by, now=now, returns_lost=True)
    except InvalidInput as e:
        record_event(job, "NotResized", str(e), now, warning=True)
    return _close(rows, now)


def _close(rows: Sequence[Notice], now: datetime) -> bool:
    return Notice.objects.filter(pk__in=[row.pk for row in rows]).update(settled_at=now) > 0


def _time(moment: float | None) -> datetime | None:
    return None if moment is None else datetime.fromtimestamp(moment, UTC)
