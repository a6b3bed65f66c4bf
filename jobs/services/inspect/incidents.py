"""Reads incidents: a page of them with how many jobs each stopped, and one of them as a whole story. Only looks.

A reader sees the outages of clusters, which everybody with a role may see, and what stopped jobs of the namespaces they may
read. Jobs of other namespaces are counted, not named; an incident that stopped no other jobs does not exist for the reader.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet

from fleet.models import Cluster
from jobs import queries
from jobs.core.failover.incident_story import Affected, Facts, Returned, Stage, Staying, Story, loss_of, stage
from jobs.core.failover.incidents import OF_JOB, OUTAGES, IncidentKind
from jobs.models import Attempt, Incident, Job, Notice
from jobs.services.failover import returns
from jobs.services.failover.incidents import away
from jobs.services.lifecycle.copies.fences import Fence

MOST = 500
"""Attempts, and jobs that stay, that a story lists."""

Namespaces = Collection[str] | None
"""Those that the reader may read; None: all."""


@dataclass(frozen=True, slots=True)
class Counts:
    """How many jobs an incident stopped."""

    jobs: int = 0
    other_jobs: int = 0
    """Of namespaces that the reader may not read."""
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class Name:
    """A job."""

    id: UUID
    namespace: str
    name: str


def visible(namespaces: Namespaces) -> QuerySet[Incident]:
    own = Attempt.objects.filter(_is_seen(namespaces), incident=OuterRef("pk"))
    return Incident.objects.filter(Q(kind__in=OUTAGES) | Q(Exists(own)))


def that_stopped(
    rows: QuerySet[Incident], namespaces: Namespaces, *, namespace: str = "", queue: str = ""
) -> QuerySet[Incident]:
    """Those that stopped a job of the namespace, or of the queue and all below it, that the reader may see."""
    jobs: QuerySet[Job] = (
        Job.objects.all() if namespaces is None else Job.objects.filter(namespace__in=list(namespaces))
    )
    if namespace:
        jobs = jobs.filter(namespace=namespace)
    if queue:
        jobs = queries.in_queue(jobs, queue)
    return rows.filter(Exists(Attempt.objects.filter(incident=OuterRef("pk"), job__in=jobs)))


def counted(incidents: Sequence[Incident], namespaces: Namespaces) -> list[tuple[Incident, Counts, Name | None]]:
    """Each incident with its counts, and with its job if it is about a single one; in three queries."""
    numbers = _counts(incidents, namespaces)
    uids = [incident.subject.removeprefix(OF_JOB) for incident in incidents if incident.subject.startswith(OF_JOB)]
    rows = Job.objects.filter(uid__in=uids).values_list("uid", "namespace", "name")
    names = {f"{OF_JOB}{uid}": Name(uid, namespace, name) for uid, namespace, name in rows}
    return [(row, numbers.get(row.pk, Counts()), names.get(row.subject)) for row in incidents]


def _counts(incidents: Sequence[Incident], namespaces: Namespaces) -> Mapping[int, Counts]:
    pks = [incident.pk for incident in incidents]
    seen = _is_seen(namespaces)
    jobs = Count("job", distinct=True)
    stopped = Attempt.objects.filter(incident__in=pks).order_by().values("incident")
    all_jobs = stopped.annotate(all=jobs, seen=Count("job", distinct=True, filter=seen))
    waiting = away().filter(seen, incident__in=pks).order_by().values("incident").annotate(waiting=jobs)
    waits = {row["incident"]: row["waiting"] for row in waiting}
    return {
        row["incident"]: Counts(row["seen"], row["all"] - row["seen"], waits.get(row["incident"], 0))
        for row in all_jobs
    }


def stage_of(incident: Incident, counted: Counts) -> Stage:
    return stage(incident.over_at, counted.waiting)


def _is_seen(namespaces: Namespaces) -> Q:
    return Q(pk__isnull=False) if namespaces is None else Q(job__namespace__in=list(namespaces))


def story(incident: Incident, namespaces: Namespaces, now: datetime) -> Story:
    """The whole incident, with at most `MOST` attempts and as many jobs that stay, in a fixed number of queries."""
    rows = Attempt.objects.filter(_is_seen(namespaces), incident=incident).select_related("job")
    ended = list(rows.only(*_FIELDS).order_by("ended_at", "pk")[: MOST + 1])
    staying = _staying(incident, namespaces)
    returned = _returned(incident, namespaces)
    return Story(
        facts=_facts(incident),
        now=now,
        affected=_affected(incident, ended[:MOST], now),
        staying=staying[:MOST],
        returned=returned[:MOST],
        is_cut=max(len(ended), len(staying), len(returned)) > MOST,
        other_jobs=_counts([incident], namespaces).get(incident.pk, Counts()).other_jobs,
    )


_FIELDS = (
    "number", "cluster_name", "placed_at", "started_at", "ended_at", "gpus", "outcome", "cause", "message",
    "job__uid", "job__kind", "job__namespace", "job__name", "job__gpus", "job__state", "job__attempt", "job__reason",
)  # fmt: skip


def _facts(incident: Incident) -> Facts:
    return Facts(
        uid=str(incident.uid),
        kind=IncidentKind(incident.kind),
        cluster=incident.cluster_name,
        nodes=incident.nodes,
        reason=incident.reason,
        message=incident.message,
        began_at=incident.began_at,
        declared_at=incident.declared_at,
        over_at=incident.over_at,
    )


def _affected(incident: Incident, ended: Sequence[Attempt], now: datetime) -> list[Affected]:
    after, saved = _next_attempts(ended), _saved_steps(ended)
    affected = []
    for row in ended:
        lost = _lost(row, after.get((row.job_id, row.number)), saved.get((row.job_id, row.number)))
        finished = row.job.state in Job.FINISHED
        stopped_s, ran_s = loss_of(incident.began_at, IncidentKind(incident.kind), lost, now, is_finished=finished)
        affected.append(replace(lost, stopped_s=stopped_s, ran_s=ran_s))
    return affected


def _lost(row: Attempt, after: Attempt | None, saved_step: int | None) -> Affected:
    job = row.job
    waits = job.attempt == row.number and job.state in (*Job.WAITING, Job.State.BACKOFF)
    return Affected(
        job=str(job.uid),
        kind=job.kind,
        namespace=job.namespace,
        name=job.name,
        gpus=job.gpus if row.gpus is None else row.gpus,
        attempt=row.number,
        cluster=row.cluster_name,
        placed_at=row.placed_at,
        started_at=row.started_at,
        ended_at=row.ended_at or row.placed_at,
        outcome=row.outcome,
        cause=row.cause,
        message=row.message,
        state=job.state,
        waits=waits,
        reason=job.reason if waits else None,
        saved_step=saved_step,
        next_attempt=after.number if after else None,
        next_cluster=after.cluster_name if after else "",
        next_placed_at=after.placed_at if after else None,
        back_at=after.started_at if after else None,
    )


def _next_attempts(ended: Sequence[Attempt]) -> Mapping[tuple[int, int], Attempt]:
    """By job and number: the attempt that followed."""
    later = Attempt.objects.filter(job__in={row.job_id for row in ended})
    numbers: dict[int, list[Attempt]] = {}
    for row in later.only("job", "number", "cluster_name", "placed_at", "started_at").order_by("number"):
        numbers.setdefault(row.job_id, []).append(row)
    return {
        (row.job_id, row.number): after
        for row in ended
        if (after := next((each for each in numbers[row.job_id] if each.number > row.number), None))
    }


def _saved_steps(ended: Sequence[Attempt]) -> Mapping[tuple[int, int], int]:
    rows = Notice.objects.filter(job__in={row.job_id for row in ended}, saved_step__isnull=False)
    saved: dict[tuple[int, int], int] = {}
    for job, attempt, step in rows.order_by("saved_step").values_list("job", "attempt", "saved_step"):
        saved[job, attempt] = step or 0
    return saved


def _returned(incident: Incident, namespaces: Namespaces) -> list[Returned]:
    """The attempts that jobs left in this outage and that went on. Of an attempt only the latest outage is known."""
    if incident.kind not in OUTAGES:
        return []
    rows = Attempt.objects.filter(
        _is_seen(namespaces),
        cluster_name=incident.cluster_name,
        returned_at__gte=incident.began_at,
        left_at__range=(incident.began_at, F("returned_at")),
    )
    if incident.over_at is not None:
        rows = rows.filter(left_at__lte=incident.over_at)
    columns = ("job__uid", "job__namespace", "job__name", "number", "left_at", "returned_at")
    found = rows.order_by("returned_at", "pk").values_list(*columns)[: MOST + 1]
    return [Returned(str(uid), *about) for uid, *about in found]


def _staying(incident: Incident, namespaces: Namespaces) -> list[Staying]:
    """The jobs that are still on the cluster of an open outage, those that leave first before the others."""
    if incident.kind not in OUTAGES or incident.over_at is not None:
        return []
    cluster = Cluster.objects.defer("access").filter(name=incident.cluster_name).first()
    if cluster is None:
        return []
    rows = Job.objects.filter(cluster=cluster, state__in=Job.ON_MEMBER, suspended=False, deleting_at__isnull=True)
    if namespaces is not None:
        rows = rows.filter(namespace__in=list(namespaces))
    jobs = rows.select_related("policy").order_by("-priority", "pk")[: MOST + 1]
    fence = Fence(cluster)
    staying = [_stays(job, cluster, fence) for job in jobs]
    return sorted(staying, key=lambda each: (each.leaves_at is None, each.leaves_at or incident.began_at))


def _stays(job: Job, cluster: Cluster, fence: Fence) -> Staying:
    return Staying(str(job.uid), job.namespace, job.name, job.gpus, returns.leaves_at(job, cluster, fence))
