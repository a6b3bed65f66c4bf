"""Reads the rows needed to apply a batch of reports: locks the jobs, prefetches related rows, counts running pods."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Count, Max, Q, QuerySet, prefetch_related_objects

from fleet.db import prepared
from fleet.db.prepared import KEY, UID, Param
from fleet.models import Cluster, Pod
from jobs.kinds import registry
from jobs.kinds.base import Manifest, Phase
from jobs.models import Job
from jobs.services.follow.status_batch import Key


def phase_of(job: Job, status: Manifest) -> Phase:
    return registry.kind_of(job.api_version, job.kind).read_status(status, 0).phase


def lock_jobs(uids: Iterable[UUID]) -> list[Job]:
    """Locks the jobs until the transaction ends, in the order of their keys."""
    return _JOBS.objects(uids=list(set(uids)))


def _with_uids(param: Param) -> QuerySet[Job]:
    rows = Job.objects.filter(uid__in=param("uids", UID), deleting_at__isnull=True).order_by("pk")
    return rows.defer("manifest", "labels", "total").select_for_update(no_key=True)


_JOBS = prepared.Rows(_with_uids)
_CLUSTERS = prepared.Rows(lambda param: Cluster.objects.filter(pk__in=param("pks", KEY)).only("name"))


def prefetch_related(reports: Iterable[tuple[Job, Manifest]], restarting: Collection[UUID]) -> None:
    """Loads related rows for the few jobs that need them: the policy of failing jobs, and clusters that messages will name."""
    phases = [(job, Phase.RESTARTING if job.uid in restarting else phase_of(job, status)) for job, status in reports]
    failing = [job for job, phase in phases if phase in (Phase.RESTARTING, Phase.FAILED)]
    starting = [job for job, phase in phases if phase is not Phase.SUCCEEDED and job.state != Job.State.RUNNING]
    prefetch_related_objects(failing, "policy")
    named = [job for job in (*failing, *starting) if job.cluster_id is not None]
    clusters = {row.pk: row for row in _CLUSTERS.objects(pks=list({job.cluster_id for job in named}))}
    for job in named:
        if job.cluster_id in clusters:
            job.cluster = clusters[job.cluster_id]


class RunningPods(Counter[Key]):
    """The number of running pods of each attempt in one member, and the jobs with pods that restarted too often."""

    restarting: frozenset[UUID] = frozenset()
    created: Mapping[Key, int] = {}
    """The number of all pods of each attempt that have not ended."""
    unsettled: frozenset[Key] = frozenset()
    """Attempts with pods that do not run yet, or have failed."""


def _pod_counts(param: Param) -> QuerySet[Pod, Any]:
    pods = Pod.objects.filter(cluster_id=param("cluster", KEY), job_uid__in=param("uids", UID)).order_by()
    live = ~Q(phase__in=["Succeeded", "Failed"])
    return pods.values_list("job_uid", "attempt").annotate(
        count=Count("pk", filter=Q(phase="Running")),
        most=Max("restarts", filter=live),
        created=Count("pk", filter=live),
        unsettled=Count("pk", filter=Q(phase__in=["Pending", "Failed"])),
    )


_POD_COUNTS = prepared.Rows(_pod_counts)


def count_running(cluster_id: int, uids: Iterable[UUID]) -> RunningPods:
    rows = _POD_COUNTS.values(cluster=cluster_id, uids=list(uids))
    running = RunningPods({(uid, attempt): count for uid, attempt, count, *_ in rows})
    running.created = {(uid, attempt): created for uid, attempt, _, _, created, _ in rows}
    least = settings.CONVOY_FAILOVER.crash_loop_restarts
    running.restarting = frozenset(uid for uid, _, _, most, *_ in rows if (most or 0) >= least)
    running.unsettled = frozenset((uid, attempt) for uid, attempt, *_, unsettled in rows if unsettled)
    return running
