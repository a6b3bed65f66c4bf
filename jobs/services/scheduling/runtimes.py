"""Who runs where, since when, and how long runs like theirs took: what a drain reservation is planned from.

Derived from rows alone, so that every process computes the same; a cache updates it by reading single jobs again.
"""

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet, Subquery

from fleet.models import Pod
from jobs import snapshot
from jobs.core.admission.backfill_policy import RuntimeEstimates
from jobs.core.division import shares
from jobs.core.scheduling.backfill_reservation import Run, Runs
from jobs.models import Job
from jobs.services.scheduling.demand import use
from quotas.core.queues import recent_use

_ENDED = recent_use.REMEMBERED
"""Jobs that ended well, the latest: what guesses and the recent use of each leaf rest on."""
_COLUMNS = (
    "pk",
    "uid",
    "namespace",
    "gpus",
    "roles",
    "started_at",
    "finished_at",
    "cluster__name",
    "attempt",
    "shares",
    "leaf",
    "submitted_by",
)
_RAN: Final = ("pk", "namespace", "leaf", "gpus", "started_at", "finished_at")
_ANY_TIME = datetime.max.replace(tzinfo=UTC)
_HAS_PLACE = (*Job.ON_MEMBER, Job.State.RECLAIMING)


def load(now: datetime) -> Runs:
    runs = Runs(estimates=RuntimeEstimates(settings.CONVOY_CYCLE.unknown_runtime_s))
    ended = Job.objects.filter(state=Job.State.SUCCEEDED, started_at__isnull=False, finished_at__isnull=False)
    latest = ended.order_by("-finished_at", "-pk").values_list(*_RAN)[:_ENDED]
    for row in reversed(latest):
        _learn(runs, now, *row)
    runs.by_job = _runs(Job.objects.all())
    use.load(runs, now)
    return runs


def read_again(runs: Runs, pks: Iterable[int]) -> None:
    """Brings these jobs up to date."""
    changed = list(pks)
    for pk in changed:
        runs.by_job.pop(pk, None)
    rows = Job.objects.filter(pk__in=changed)
    runs.by_job |= _runs(rows)
    ended = rows.filter(state=Job.State.SUCCEEDED, started_at__isnull=False, finished_at__isnull=False)
    for row in ended.order_by("finished_at", "pk").values_list(*_RAN):
        _learn(runs, _ANY_TIME, *row)
    use.read_again(runs, changed)


def forget(runs: Runs, pk: int) -> None:
    """The job was deleted."""
    runs.by_job.pop(pk, None)
    use.read_again(runs, [pk])


def _learn(
    runs: Runs,
    now: datetime,
    pk: int,
    namespace: str,
    leaf: str,
    gpus: int,
    started_at: datetime | None,
    finished_at: datetime | None,
) -> None:
    """Learns one run. Of one that ended after ``now``, while the clock was ahead, its length counts only if it began there."""
    if not started_at or not finished_at:
        return
    ended, took = min(finished_at, now), finished_at - started_at
    began = started_at if started_at <= ended else ended - took
    if ended - began == took:
        runs.estimates.learn(namespace, gpus, took.total_seconds())
    runs.used.ended(pk, leaf, gpus, began.timestamp(), ended.timestamp())


def _runs(rows: QuerySet[Job]) -> dict[int, Run]:
    rows = rows.filter(state__in=_HAS_PLACE, cluster__isnull=False).order_by()
    jobs = list(rows.values(*_COLUMNS))
    requests = {job["uid"]: {role["name"]: role["request"] for role in job["roles"]} for job in jobs}
    pods: dict[UUID, list[tuple[str, Any]]] = defaultdict(list)
    bound = Pod.objects.filter(job_uid__in=Subquery(rows.values("uid")), phase__in=snapshot.LIVE).exclude(node="")
    where = {job["uid"]: job["cluster__name"] for job in jobs}
    for uid, cluster, role, node in bound.values_list("job_uid", "cluster__name", "role", "node").order_by():
        # Of a job that is divided, its largest share.
        if (request := requests.get(uid, {}).get(role)) and cluster == where[uid]:
            pods[uid].append((node, request))
    return {job["pk"]: _run(job, pods[job["uid"]]) for job in jobs}


def _run(job: dict[str, Any], pods: list[tuple[str, Any]]) -> Run:
    return Run(
        owner=job["namespace"],
        devices=job["gpus"],
        since=job["started_at"].timestamp() if job["started_at"] else None,
        runtime_s=snapshot.declared_runtime(job["roles"]),
        hold_key=(str(job["uid"]), shares.number_on(job["shares"], job["cluster__name"], job["attempt"])),
        cluster=job["cluster__name"],
        pods=tuple(pods),
        leaf=job["leaf"],
        user=job["submitted_by"],
    )
