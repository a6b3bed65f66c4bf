"""Time-based failover: moves jobs that are unhealthy for too long, on a lost cluster, or not started in time.

It runs when the countdown of a job is over, and in every sweep in case the countdown was lost. Both do the same.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet

from fleet.changes import events
from fleet.core.members.freshness import Freshness
from fleet.db import clock, isolation, prepared
from fleet.db.prepared import TIME, Param
from fleet.models import Cluster, Pod
from jobs.core.failover.causes import Cause
from jobs.core.failover.rules import Outcome, PurgeMode
from jobs.core.policies.unreachable import Unreachable
from jobs.core.reasons import Code, Reason
from jobs.events import announce_jobs
from jobs.kinds import registry
from jobs.kinds.base import Phase
from jobs.models import Attempt, Job, Work
from jobs.services.failover import crash_loops, drained_nodes, eviction_rate, failover, lost_gangs, returns
from jobs.services.failover.crash_loops import CrashLoop
from jobs.services.follow.timeouts import cluster_waits, division_health, fenced
from jobs.services.lifecycle import works
from jobs.services.lifecycle.copies.fences import Fence
from jobs.services.lifecycle.locks import lock_jobs
from jobs.snapshot import spec_of, taints_of

_LEAVE_CHUNK = 100
"""Jobs of a lost cluster that leave it in one transaction. They are locked until it ends."""


def tolerance(job: Job) -> float | None:
    """How many seconds the policy tolerates an unhealthy job. None: the policy has no application failover."""
    return spec_of(job).application_toleration_s


def restarts_at_once(job: Job) -> bool:
    """Whether the job has failed because of its nodes: then waiting for it to recover would only cost time."""
    return job.state == Job.State.BACKOFF and (job.reason or {}).get("cause") == Cause.INFRASTRUCTURE


def move_due_at(job: Job) -> datetime | None:
    """When an unhealthy job has to move. None for a healthy job."""
    if job.unhealthy_since is None:
        return None
    wait = 0.0 if restarts_at_once(job) else crash_loops.tolerated_s(job)
    return job.unhealthy_since + timedelta(seconds=wait)


def check_later(job: Job, now: datetime) -> None:
    at = move_due_at(job)
    if at is not None:
        events.enqueue("jobs.check_health", countdown_s=max((at - now).total_seconds(), 0) + 0.05)


def observed_for(cluster: Cluster | None, event: datetime, now: datetime) -> float:
    """How many seconds since the event the cluster was observed. Time without observation does not count (invariant I12)."""
    freshness = cluster.freshness if cluster else Freshness()
    return freshness.observed_for(event, now).total_seconds()


def check(now: datetime) -> int:
    """Moves every job that is due, and returns how many."""
    checked = (isolation.run(step.__name__, [], partial(step, now)) for step in CHECKS)
    return sum(moved for result in checked for moved in result or ())


def _move_unhealthy(now: datetime) -> int:
    return sum(isolation.each("failover.unhealthy", _UNHEALTHY.objects(), lambda job: _check_unhealthy(job, now), now))


def _unhealthy() -> QuerySet[Job]:
    rows = Job.objects.filter(
        shares=[], state__in=Job.ON_MEMBER, unhealthy_since__isnull=False, suspended=False, deleting_at__isnull=True
    )
    return rows.select_related("policy", "cluster")


_UNHEALTHY = prepared.Rows(lambda _: _unhealthy())


def _check_unhealthy(job: Job, now: datetime) -> bool:
    loop, since = crash_loops.find(job, crash_loops.rows([job.uid]), now), job.unhealthy_since
    wait = crash_loops.tolerated_s(job) if loop else tolerance(job)
    if since and since > now:
        # A clock has stepped back: what has begun later than now would be tolerated until then.
        Job.objects.filter(pk=job.pk, unhealthy_since=since).update(unhealthy_since=now)
        return False
    if wait is not None and restarts_at_once(job):
        wait = 0.0
    if loop is None and _keeps_running(job):
        _clear_unhealthy(job, now)
    elif wait is not None and since and observed_for(job.cluster, since, now) >= wait:
        return _end_unhealthy(job, f"unhealthy on {job.cluster} since {since:%H:%M:%S} UTC", loop, now)
    return False


def _end_unhealthy(job: Job, message: str, loop: CrashLoop | None, now: datetime) -> bool:
    message = f"{message}: {loop}" if loop else message
    if tolerance(job) is None:
        return failover.fail(job, Reason(Code.FAILED, message), now)
    reason = Reason(Code.APPLICATION_UNHEALTHY, message)
    return failover.leave(job, Outcome.FAILED, reason, now, purge=_purge_mode(job))


def _keeps_running(job: Job) -> bool:
    """Whether the job's crash loop is over and it runs again. The member sends no report when that happens."""
    if job.state != Job.State.RUNNING:
        return False
    pods = Pod.objects.filter(job_uid=job.uid, attempt=job.attempt, phase="Running").count()
    return registry.kind_of(job.api_version, job.kind).read_status(job.status, pods).phase is Phase.RUNNING


@transaction.atomic
def _clear_unhealthy(job: Job, now: datetime) -> None:
    unhealthy = Job.objects.filter(pk=job.pk, attempt=job.attempt, state=job.state, unhealthy_since=job.unhealthy_since)
    if unhealthy.update(unhealthy_since=None, reason=None):
        job.refresh_from_db()
        announce_jobs([job], now)


def _purge_mode(job: Job) -> PurgeMode:
    """The purge mode for an unhealthy job. ``Never`` applies only to a copy that has failed: a copy that still restarts would
    run beside its replacement.
    """
    mode = spec_of(job).application_purge
    alive = job.state != Job.State.BACKOFF
    return PurgeMode.GRACEFULLY if mode is PurgeMode.NEVER and alive else mode


def _move_from_lost_clusters(now: datetime) -> int:
    tainted = _TAINTED.objects()
    return sum(isolation.each("failover.lost_clusters", tainted, lambda cluster: _move_from(cluster, now), now))


_TAINTED = prepared.Rows(lambda _: Cluster.objects.exclude(taints=[]).defer("access"))


def _move_from(cluster: Cluster, now: datetime) -> int:
    if not cluster.is_heartbeat_recent(now) or not any(t.effect == "NoExecute" for t in taints_of(cluster.taints)):
        return 0
    rows = Job.objects.filter(
        shares=[], cluster=cluster, state__in=Job.ON_MEMBER, suspended=False, deleting_at__isnull=True
    ).select_related("policy")

    fence = Fence(cluster)

    def leaves(job: Job) -> Job | None:
        if returns.waits_for(job, cluster, now, fence):
            cluster_waits.explain(job, cluster, fence, now)
        return None if returns.may_stay(job, cluster, now, fence) else job

    jobs = isolation.each("failover.may_stay", rows.order_by("-priority", "pk"), leaves, now)
    due, moved = [job for job in jobs if job is not None], 0
    for start in range(0, len(due), _LEAVE_CHUNK):
        batch = due[start : start + _LEAVE_CHUNK]
        results = isolation.together("failover.leave", batch, lambda jobs: _leave_lost(cluster, jobs, now), now)
        moved += sum(count for count, _ in results)
        if not all(is_within_rate for _, is_within_rate in results):
            break
    return moved


@transaction.atomic
def _leave_lost(cluster: Cluster, jobs: Sequence[Job], now: datetime) -> tuple[int, bool]:
    """Makes the jobs leave the cluster. Returns how many have left, and whether the eviction rate allows more.

    One transaction, so that a single cycle places them all. Jobs that another pass has moved meanwhile do not count against the
    rate; a pass may last longer than its lock.
    """
    here = set(lock_jobs(Job.objects.filter(pk__in=[job.pk for job in jobs], cluster=cluster, state__in=Job.ON_MEMBER)))
    here -= _locked_and_sent(cluster, jobs, now)
    allowed = eviction_rate.allow(cluster, now, len(here))
    leaving = [job for job in jobs if job.pk in here][:allowed]
    left = [job for job in leaving if _leave_cluster(job, cluster, now)]
    if silent := [job.pk for job in left if returns.leaves_for_silence(job, cluster, now)]:
        lost = Attempt.objects.filter(job__in=silent, number=F("job__attempt"), outcome=Outcome.LOST)
        lost.update(left_at=F("ended_at"))
    return len(left), allowed == len(here)


def _leave_cluster(job: Job, cluster: Cluster, now: datetime) -> bool:
    outcome, reason = division_health.cluster_departure(job, cluster, now)
    return failover.leave(job, outcome, reason, now, purge=_cluster_purge(job))


def _locked_and_sent(cluster: Cluster, jobs: Sequence[Job], now: datetime) -> set[int]:
    """Those of the jobs that stay after all, because a worker has begun to send their copies meanwhile.

    A worker that begins later waits for this transaction, and then has nothing to send.
    """
    careful = [job for job in jobs if spec_of(job).unreachable is not Unreachable.REPLACE]
    if not careful:
        return set()
    uids = [job.uid for job in careful]
    unsent = Work.objects.filter(job_uid__in=uids, cluster=cluster, state=Work.State.PENDING).order_by("pk")
    list(unsent.select_for_update(no_key=True).values_list("pk", flat=True))
    fence = Fence(cluster, uids)
    return {job.pk for job in careful if returns.may_stay(job, cluster, now, fence)}


def _cluster_purge(job: Job) -> PurgeMode:
    mode = spec_of(job).cluster_purge
    return PurgeMode.GRACEFULLY if mode is PurgeMode.NEVER else mode


def _move_never_started(now: datetime) -> int:
    limit = now - timedelta(seconds=settings.CONVOY_FAILOVER.start_timeout_s)
    rows = _STARTING.objects(limit=limit, to_come=now + clock.STEP)
    return sum(isolation.each("failover.never_started", rows, lambda job: _check_started(job, now), now))


def _starting(param: Param) -> QuerySet[Job]:
    rows = Job.objects.filter(
        shares=[],
        state__in=[Job.State.PLACED, Job.State.DISPATCHED],
        suspended=False,
        deleting_at__isnull=True,
    ).select_related("cluster", "binding")
    is_late = Q(binding__scheduled_at__lt=param("limit", TIME)) | Q(binding__scheduled_at__gt=param("to_come", TIME))
    return rows.filter(is_late)


_STARTING = prepared.Rows(_starting)


def _check_started(job: Job, now: datetime) -> bool:
    placed = job.binding.scheduled_at
    since = works.asked_since(job, job.attempt, placed) if placed else None
    if since is not None and since > now + clock.STEP:
        works.restart_start_timeout(job, now)
        return False
    if since is None or observed_for(job.cluster, since, now) < settings.CONVOY_FAILOVER.start_timeout_s:
        return False
    message = f"{job.cluster} did not run all pods within {settings.CONVOY_FAILOVER.start_timeout_s:g} s"
    refused = "refused" in (job.reason or {})
    message = f"{message}: {(job.reason or {})['message']}" if refused else message
    outcome = Outcome.REFUSED if refused else Outcome.FAILED
    return failover.leave(job, outcome, Reason(Code.WAITING_FOR_PODS, message), now)


def _move_detached(now: datetime) -> int:
    """Moves jobs whose cluster was detached from the fleet."""
    reason = Reason(Code.CLUSTER_LOST, "its cluster was detached from the fleet")

    def leave(job: Job) -> bool:
        has_copy = Work.objects.filter(job_uid=job.uid, attempt=job.attempt).exists()
        return not has_copy and failover.leave(job, Outcome.LOST, reason, now)

    return sum(isolation.each("failover.detached", _DETACHED.objects(), leave, now))


_DETACHED = prepared.Rows(
    lambda _: Job.objects.filter(shares=[], state__in=Job.ON_MEMBER, cluster__isnull=True, deleting_at__isnull=True)
)


CHECKS = (
    division_health.check, _move_unhealthy, _move_from_lost_clusters, lost_gangs.move, drained_nodes.move,
    _move_never_started, _move_detached, cluster_waits.end, fenced.move,
)  # fmt: skip
"""The checks of a pass. They are independent of each other."""
