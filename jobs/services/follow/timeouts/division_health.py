"""Time-based failover for divided jobs: applies the rules of `jobs.services.follow.timeouts.health` to each share."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import QuerySet

from fleet.db import clock, isolation, prepared
from fleet.models import Cluster
from jobs.core.division import shares as parts
from jobs.core.division.shares import Share
from jobs.core.failover.rules import Outcome, PurgeMode
from jobs.core.life.shares import ShareState
from jobs.core.reasons import Code, Reason
from jobs.models import Attempt, Job, Work
from jobs.services.failover import crash_loops, division, eviction_rate, returns, shares
from jobs.services.lifecycle import works
from jobs.snapshot import spec_of

Departure = tuple[Outcome, Reason, PurgeMode]
"""How the attempt of a share ends, why, and when its copy is removed."""


def check(now: datetime) -> int:
    """Moves every share that must leave its cluster now, and returns how many."""
    jobs = _DIVIDED.objects()
    clusters = {row.name: row for row in Cluster.objects.defer("access")} if jobs else {}
    return sum(isolation.each("failover.shares", jobs, lambda job: _check_job(job, clusters, now), now))


def _divided() -> QuerySet[Job]:
    rows = Job.objects.exclude(shares=[]).filter(state__in=(*Job.ON_MEMBER, Job.State.MOVING))
    return rows.filter(suspended=False, deleting_at__isnull=True).select_related("policy")


_DIVIDED = prepared.Rows(lambda _: _divided())


def _check_job(job: Job, clusters: Mapping[str, Cluster], now: datetime) -> int:
    moved = 0
    if any(share.unhealthy_since and _is_to_come(share, now) for share in parts.of_stored(job.shares)):
        division.count_unhealthy_from(job, now)
        return 0
    for share in parts.of_stored(job.shares):
        cluster = clusters.get(share.cluster)
        departure = next(_departures(job, share, cluster, now), None) if share.is_live else None
        if departure is not None and _may_leave(cluster, departure[0], now):
            outcome, reason, purge = departure
            moved += division.leave(job, share.attempt, outcome, reason, now, purge=purge)
        elif share.is_live and share.unhealthy_since:
            moved += _end_crash_loop(job, share, cluster, now)
    return moved


def _is_to_come(share: Share, now: datetime) -> bool:
    return datetime.fromisoformat(share.unhealthy_since) > now + clock.STEP


def _end_crash_loop(job: Job, share: Share, cluster: Cluster | None, now: datetime) -> bool:
    """Moves a share in a crash loop, or ends its job, once the toleration is over. Clears the state if the loop has ended."""
    if share.state not in (ShareState.DISPATCHED, ShareState.RUNNING) or cluster is None:
        return False
    loop, since = crash_loops.find(job, crash_loops.rows([job.uid]), now, attempt=share.attempt), share.unhealthy_since
    if loop is None:
        division.recover(job, share.attempt, now)
        return False
    began = datetime.fromisoformat(since)
    if cluster.freshness.observed_for(began, now) < timedelta(seconds=crash_loops.tolerated_s(job)):
        return False
    message = f"its share on {share.cluster} is unhealthy since {began:%H:%M:%S} UTC: {loop}"
    if spec_of(job).application_toleration_s is None:
        return division.end_unhealthy(job, share.attempt, Reason(Code.FAILED, message), now)
    # Purge mode Never keeps only failed copies. This one still restarts, and would run beside its replacement.
    mode = spec_of(job).application_purge
    purge = PurgeMode.GRACEFULLY if mode is PurgeMode.NEVER else mode
    reason = Reason(Code.APPLICATION_UNHEALTHY, message)
    return division.leave(job, share.attempt, Outcome.FAILED, reason, now, purge=purge)


def _may_leave(cluster: Cluster | None, outcome: Outcome, now: datetime) -> bool:
    return cluster is None or outcome not in returns.LEFT_THE_CLUSTER or bool(eviction_rate.allow(cluster, now))


def _departures(job: Job, share: Share, cluster: Cluster | None, now: datetime) -> Iterator[Departure]:
    """The reasons for which a share must leave its cluster now, the most important first."""
    spec = spec_of(job)
    if cluster is None or not Work.objects.filter(job_uid=job.uid, attempt=share.attempt).exists():
        message = f"{share.cluster} was detached from the fleet"
        yield Outcome.LOST, Reason(Code.CLUSTER_LOST, message), PurgeMode.GRACEFULLY
        return
    wait, at = spec.application_toleration_s, returns.leaves_at(job, cluster)
    if at is not None and at <= now and cluster.is_heartbeat_recent(now):
        purge = PurgeMode.GRACEFULLY if spec.cluster_purge is PurgeMode.NEVER else spec.cluster_purge
        yield *cluster_departure(job, cluster, now), purge
    if share.state is ShareState.BACKOFF and wait is not None:
        since = datetime.fromisoformat(share.unhealthy_since)
        if cluster.freshness.observed_for(since, now) >= timedelta(seconds=wait):
            message = f"its share on {share.cluster} is unhealthy since {since:%H:%M:%S} UTC"
            yield Outcome.FAILED, Reason(Code.APPLICATION_UNHEALTHY, message), spec.application_purge
    if share.state in (ShareState.PLACED, ShareState.DISPATCHED) and _is_late(job, share, cluster, now):
        message = f"{share.cluster} did not run its share within {settings.CONVOY_FAILOVER.start_timeout_s:g} s"
        refusal = shares.refusals_of(job).get(str(share.attempt))
        message = f"{message}: {refusal['message']}" if refusal else message
        outcome = Outcome.REFUSED if refusal else Outcome.FAILED
        yield outcome, Reason(Code.WAITING_FOR_PODS, message), PurgeMode.GRACEFULLY


def _is_late(job: Job, share: Share, cluster: Cluster, now: datetime) -> bool:
    placed = Attempt.objects.filter(job=job, number=share.attempt).values_list("placed_at", flat=True).first()
    since = works.asked_since(job, share.attempt, placed) if placed else None
    limit = timedelta(seconds=settings.CONVOY_FAILOVER.start_timeout_s)
    return since is not None and cluster.freshness.observed_for(since, now) > limit


def cluster_departure(job: Job, cluster: Cluster, now: datetime) -> tuple[Outcome, Reason]:
    """How the attempt of a job ends that leaves the cluster now, and why. A drain is no fault of the cluster."""
    message = f"{cluster.name} is {describe_condition(cluster)} and the job's toleration has expired"
    if returns.leaves_for_drain(job, cluster, now):
        return Outcome.DRAINED, Reason(Code.WAITING_FOR_SCHEDULER, message)
    return Outcome.LOST, Reason(Code.CLUSTER_LOST, message)


def describe_condition(cluster: Cluster) -> str:
    """The condition of a cluster because of which jobs leave it, in one word."""
    if cluster.state != Cluster.State.READY:
        return cluster.state
    return "drained" if cluster.drained else "tainted"
