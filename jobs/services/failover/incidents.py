"""Gathers failed attempts into incidents, and opens and closes the incidents of clusters that are not Ready.

Nothing here decides about a job: it reads what failover has written, in a step of the sweep, so that a process that dies has
only delayed it. An attempt is assigned once, and again if the cause of its failure turns out to be another one.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from structlog import get_logger

from fleet.core.members.health import State
from fleet.db import prepared
from fleet.db.prepared import TIME, Param
from fleet.models import Cluster
from fleet.services.operations import clock_steps
from jobs.core.failover.incidents import (
    OF_JOB,
    OUTAGES,
    WINDOW,
    Failed,
    IncidentKind,
    kind_of,
    outage_kind,
    outage_subject,
    subject_of,
)
from jobs.models import Attempt, Incident, Job

log = get_logger(__name__)

BATCH = 1000
"""Attempts that a pass assigns, and incidents that it deletes: the next pass is seconds away."""


def run(now: datetime) -> None:
    _follow_clusters(now)
    if _ANY_UNASSIGNED.values(since=_gathered_since(now)):
        _gather(now)
    _end(now)
    _forget(now)


def _follow_clusters(now: datetime) -> None:
    """One open incident for each cluster that is not Ready, and none for the others."""
    unwell = {outage_subject(row.name): row for row in _NOT_READY.objects() if row.failing_since}
    for incident in _OUTAGES.objects():
        cluster = unwell.pop(incident.subject, None)
        if cluster is None:
            _close(incident, now)
        elif cluster.state_reason != incident.reason:
            _update_outage(incident, cluster, now)
    for subject, cluster in unwell.items():
        _open_outage(subject, cluster, now)


_NOT_READY = prepared.Rows(lambda _: Cluster.objects.exclude(state=State.READY).defer("access"))
_OUTAGES = prepared.Rows(lambda _: Incident.objects.filter(over_at=None, subject__startswith=outage_subject("")))


def _close(incident: Incident, now: datetime) -> None:
    Incident.objects.filter(pk=incident.pk, over_at=None).update(over_at=now)
    log.info("incident over", incident=str(incident.uid), kind=incident.kind, cluster=incident.cluster_name)


def _kind_of_outage(cluster: Cluster) -> IncidentKind:
    return outage_kind(answers=cluster.state == State.NOT_READY, reason=cluster.state_reason)


def _update_outage(incident: Incident, cluster: Cluster, now: datetime) -> None:
    state = {"kind": _kind_of_outage(cluster), "reason": cluster.state_reason, "message": cluster.state_message}
    Incident.objects.filter(pk=incident.pk).update(**state, last_at=now)


def _open_outage(subject: str, cluster: Cluster, now: datetime) -> None:
    since = min(cluster.failing_since or now, cluster.state_since, now)
    _opened(
        Incident(
            kind=_kind_of_outage(cluster),
            subject=subject,
            cluster_name=cluster.name,
            reason=cluster.state_reason,
            message=cluster.state_message,
            began_at=since,
            declared_at=min(cluster.state_since, now),
            last_at=now,
        )
    )


def _opened(incident: Incident) -> Incident:
    incident.save(force_insert=True)
    log.warning(
        "incident",
        incident=str(incident.uid),
        kind=str(incident.kind),
        cluster=incident.cluster_name,
        reason=incident.reason,
    )
    return incident


@dataclass(frozen=True, slots=True)
class _Unassigned:
    pk: int
    at: datetime
    failed: Failed
    message: str


@transaction.atomic
def _gather(now: datetime) -> None:
    by_subject: dict[tuple[IncidentKind, str], list[_Unassigned]] = defaultdict(list)
    rows = _unassigned(now)
    losses = _losses(rows)
    for row in rows:
        kind = kind_of(row.failed) or losses[row.pk]
        subject = outage_subject(row.failed.cluster) if kind in OUTAGES else subject_of(kind, row.failed)
        by_subject[kind, subject].append(row)
    for (kind, subject), alike in by_subject.items():
        for incident, members in _spread(kind, subject, alike):
            _assign(incident, members)


def _unassigned(now: datetime) -> list[_Unassigned]:
    # Rows that another process is writing are left to the next pass: waiting for them could end in a deadlock.
    rows = (
        _without_incident(_gathered_since(now))
        .select_for_update(skip_locked=True, of=("self",), no_key=True)
        .select_related("job")
        .only("ended_at", "cluster_name", "outcome", "cause", "evidence", "message", "job__uid")
        .order_by("ended_at", "pk")
    )
    return [_Unassigned(row.pk, row.ended_at, _failed(row), row.message) for row in rows[:BATCH] if row.ended_at]


def _gathered_since(now: datetime) -> datetime:
    return now - timedelta(seconds=settings.CONVOY_RETENTION.events_s)


def _without_incident(since: Any) -> QuerySet[Attempt]:
    return Attempt.objects.filter(incident=None, ended_at__gt=since).exclude(cause="")


_ANY_UNASSIGNED = prepared.Rows(
    lambda param: _without_incident(param("since", TIME)).order_by("ended_at", "pk").values_list("pk")[:1]
)


def _failed(row: Attempt) -> Failed:
    evidence: Sequence[dict[str, object]] = row.evidence or []
    nodes = sorted({str(pod["node"]) for pod in evidence if pod.get("node")})
    return Failed(str(row.job.uid), row.cluster_name, row.outcome, row.cause, tuple(nodes))


def _losses(rows: Sequence[_Unassigned]) -> Mapping[int, IncidentKind]:
    """How the clusters were lost that attempts left, by primary key; in two queries."""
    lost = [row for row in rows if kind_of(row.failed) is None]
    names = {row.failed.cluster for row in lost}
    clusters = {cluster.name: cluster for cluster in Cluster.objects.defer("access").filter(name__in=names)}
    outages: dict[str, list[Incident]] = defaultdict(list)
    since = min((row.at for row in lost), default=None)
    if since is not None:
        lasting = Q(over_at=None) | Q(over_at__gte=since)
        for outage in Incident.objects.filter(lasting, subject__in=[outage_subject(name) for name in names]):
            outages[outage.cluster_name].append(outage)
    return {row.pk: _loss(row, outages[row.failed.cluster], clusters.get(row.failed.cluster)) for row in lost}


def _loss(row: _Unassigned, outages: Sequence[Incident], cluster: Cluster | None) -> IncidentKind:
    """By an outage at that time, by a person, or by a detachment."""
    outage = next((each for each in outages if _belongs(row, each)), None)
    if outage is not None:
        return IncidentKind(outage.kind)
    if cluster is None:
        return IncidentKind.CLUSTER_DETACHED
    return IncidentKind.CLUSTER_DRAINED if cluster.drained else IncidentKind.CLUSTER_TAINTED


def _spread(kind: IncidentKind, subject: str, rows: Sequence[_Unassigned]) -> list[tuple[Incident, list[_Unassigned]]]:
    """The incidents that the rows belong to, which are those of one subject in the order of time; opens what is missing."""
    spread: list[tuple[Incident, list[_Unassigned]]] = []
    for row in rows:
        if not spread or not _belongs(row, spread[-1][0]):
            spread.append((_find(subject, row) or _begin(kind, subject, row), []))
        incident, members = spread[-1]
        members.append(row)
        incident.last_at = max(incident.last_at, row.at)
    return spread


def _find(subject: str, row: _Unassigned) -> Incident | None:
    latest = Incident.objects.filter(subject=subject, began_at__lte=row.at + WINDOW).order_by("-began_at")
    return next((incident for incident in latest[:_LOOKED_AT] if _belongs(row, incident)), None)


def _belongs(row: _Unassigned, incident: Incident) -> bool:
    if incident.kind in OUTAGES:
        return incident.began_at <= row.at and (incident.over_at is None or row.at <= incident.over_at)
    is_open_for_its_job = incident.over_at is None and incident.subject.startswith(OF_JOB)
    return is_open_for_its_job or row.at <= incident.last_at + WINDOW


_LOOKED_AT = 3
"""Of a subject's latest incidents: what an attempt that has just ended belongs to is among them."""


def _begin(kind: IncidentKind, subject: str, row: _Unassigned) -> Incident:
    Incident.objects.filter(subject=subject, over_at=None).update(over_at=row.at)
    return _opened(
        Incident(
            kind=kind,
            subject=subject,
            cluster_name=row.failed.cluster,
            message=row.message,
            began_at=row.at,
            declared_at=row.at,
            last_at=row.at,
        )
    )


def _assign(incident: Incident, rows: Sequence[_Unassigned]) -> None:
    Attempt.objects.filter(pk__in=[row.pk for row in rows]).update(incident=incident)
    nodes = set(incident.nodes)
    if incident.kind == IncidentKind.NODE_LOST:
        nodes |= {node for row in rows for node in row.failed.nodes}
    incident.nodes = sorted(nodes)[:_MAX_NODES]
    incident.began_at = min(incident.began_at, rows[0].at)
    incident.save(update_fields=["nodes", "last_at", "began_at"])


_MAX_NODES = 100


def away() -> QuerySet[Attempt]:
    """Attempts whose jobs wait for another one."""
    return Attempt.objects.filter(job__state__in=[*Job.WAITING, Job.State.BACKOFF], job__attempt=F("number"))


def _end(now: datetime) -> None:
    """Ends the incidents of jobs, nodes and evictions: nothing has been added for a while, and no job waits because of it."""
    for incident in _QUIET.objects(before=now - WINDOW):
        _close(incident, now)


def _quiet(param: Param) -> QuerySet[Incident]:
    waiting = away().filter(incident=OuterRef("pk"))
    quiet = Incident.objects.filter(over_at=None, last_at__lt=param("before", TIME)).exclude(kind__in=OUTAGES)
    return quiet.exclude(Exists(waiting))


_QUIET = prepared.Rows(_quiet)


def _forget(now: datetime) -> None:
    """Deletes incidents that ended before the oldest event that is kept, and open ones that have no attempt any more.

    An ended incident whose jobs were deleted is not shown any more, and is deleted when its time is over.
    """
    keep = timedelta(seconds=settings.CONVOY_RETENTION.events_s)
    old = _OLD.values(before=now - keep) and _OLD.values(before=clock_steps.forgettable_before(keep, now))
    if pks := [pk for (pk,) in [*old, *_EMPTY.values()]]:
        Incident.objects.filter(pk__in=pks).delete()


def _empty() -> QuerySet[Incident]:
    empty = Incident.objects.filter(~Exists(Attempt.objects.filter(incident=OuterRef("pk"))), over_at=None)
    return empty.exclude(subject__startswith=outage_subject(""))


_OLD = prepared.Rows(lambda param: Incident.objects.filter(over_at__lt=param("before", TIME)).values_list("pk")[:BATCH])
_EMPTY = prepared.Rows(lambda _: _empty().values_list("pk"))
