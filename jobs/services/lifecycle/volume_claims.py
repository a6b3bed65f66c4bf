"""Where the data of volume claims is: a claim that Convoy sends binds the jobs that mount it to the clusters that have it.

Storage that a cluster's owner provides is not known here. A claim whose annotation says that its data is reached from anywhere
binds no job, and has no rows.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from fleet.changes import journal
from fleet.models import Cluster
from jobs.core.manifest_fields import Faults
from jobs.core.policies import data_placement
from jobs.events import CLAIM_LOCATION
from jobs.kinds.base import Manifest
from jobs.models import ClaimLocation, Dependent, Job, Work
from jobs.services.lifecycle import cycle_requests, works

CLAIM = "PersistentVolumeClaim"


class DataElsewhere(Exception):
    """A claim of the job has its data on another cluster, and its policy does not let the job run without."""


@transaction.atomic
def bind(work: Work, job: Job, rows: Iterable[Dependent], now: datetime, *, anywhere: bool) -> None:
    """Written before the claims are sent: two jobs that were placed apart before either was sent do not both start.

    Shares of a divided job are sent to several clusters, and each has its own copy of the claim. A worker whose claim of the
    work is lost writes nothing: the job may be elsewhere by now.
    """
    cluster = work.cluster
    names = [row.name for row in rows if row.kind == CLAIM and not _is_anywhere(row.manifest)]
    if not names:
        return
    _lock(job.namespace, names)
    works.hold(work)
    known: dict[str, list[str]] = {}
    locations = ClaimLocation.objects.filter(namespace=job.namespace, name__in=names)
    for name, on in locations.order_by("cluster__name").values_list("name", "cluster__name"):
        known.setdefault(name, []).append(on)
    for name in sorted(known):
        if cluster.name not in known[name] and not anywhere and not job.shares:
            raise DataElsewhere(data_placement.elsewhere(f"{job.namespace}/{name}", known[name]))
    new = sorted(name for name in names if cluster.name not in known.get(name, []))
    ClaimLocation.objects.bulk_create(
        [ClaimLocation(namespace=job.namespace, name=name, cluster=cluster, created_at=now) for name in new]
    )
    _announce(job.namespace, new, cluster.uid, now)


@transaction.atomic
def forget(work: Work, job: Job, name: str, now: datetime) -> None:
    """The cluster did not have the claim any more when a copy of the job was removed, and another job's may have it since."""
    cluster = work.cluster
    _lock(job.namespace, [name])
    works.hold(work)
    if _is_mounted(cluster, job.namespace, name, by_others_than=job.uid):
        return
    if ClaimLocation.objects.filter(namespace=job.namespace, name=name, cluster=cluster).delete()[0]:
        _announce(job.namespace, [name], cluster.uid, now)


@transaction.atomic
def missing(location: ClaimLocation, now: datetime) -> bool:
    """The cluster had the claim with a volume, and says that it has it no more: forgotten, unless a copy there mounts it.

    Of one without a volume nothing is said: it may not have been sent yet. Returns whether it is forgotten.
    """
    _lock(location.namespace, [location.name])
    if _is_mounted(location.cluster, location.namespace, location.name):
        return False
    if not _as_read(location).filter(node_terms__isnull=False).delete()[0]:
        return False
    _announce(location.namespace, [location.name], location.cluster.uid, now)
    return True


def _is_mounted(cluster: Cluster, namespace: str, name: str, *, by_others_than: UUID | None = None) -> bool:
    """Whether a copy that the cluster may have mounts the claim."""
    works = Work.objects.filter(cluster=cluster, namespace=namespace).exclude(state=Work.State.GONE)
    jobs = Job.objects.filter(uid__in=works.order_by().values("job_uid"))
    if by_others_than is not None:
        jobs = jobs.exclude(uid=by_others_than)
    return any(name in role.get("claims", ()) for roles in jobs.values_list("roles", flat=True) for role in roles)


def _as_read(location: ClaimLocation) -> QuerySet[ClaimLocation]:
    """Nothing once another worker has read it again: what this one has read is older."""
    return ClaimLocation.objects.filter(pk=location.pk, read_due_at=location.read_due_at)


@transaction.atomic
def reached_from(location: ClaimLocation, terms: list[list[list[Any]]] | None, now: datetime) -> bool:
    """The volume of the claim is reached from these nodes of its cluster; without terms from all. None: it has no volume.

    False if that was known.
    """
    _lock(location.namespace, [location.name])
    before = ClaimLocation.objects.filter(pk=location.pk).values_list("node_terms", flat=True).first()
    if terms == before or not _as_read(location).update(node_terms=terms):
        return False
    if terms or before:
        _announce(location.namespace, [location.name], location.cluster.uid, now)
    return True


@transaction.atomic
def written(manifest: Manifest, now: datetime) -> None:
    """The fleet's own object, which may say now that its data is reached from anywhere; its row is locked."""
    if manifest["kind"] != CLAIM or not _is_anywhere(manifest):
        return
    namespace, name = manifest["metadata"]["namespace"], manifest["metadata"]["name"]
    rows = ClaimLocation.objects.filter(namespace=namespace, name=name)
    if clusters := list(rows.values_list("cluster__uid", flat=True)):
        rows.delete()
        _announce(namespace, [name], clusters[0], now)


def with_locations(rows: QuerySet[Dependent]) -> QuerySet[Dependent]:
    """Each claim with whether a cluster has it."""
    locations = ClaimLocation.objects.filter(namespace=OuterRef("namespace"), name=OuterRef("name"))
    return rows.annotate(is_located=Exists(locations))


def phase(claim: Dependent) -> str:
    """Of a claim that was read with its locations. One whose data is reached from anywhere waits for no cluster."""
    is_located: bool = getattr(claim, "is_located", False)
    return "Bound" if is_located or _is_anywhere(claim.manifest) else "Pending"


def _is_anywhere(manifest: Manifest) -> bool:
    return data_placement.is_anywhere((manifest.get("metadata") or {}).get("annotations") or {}, Faults())


def _lock(namespace: str, names: Sequence[str]) -> None:
    """Before the locations, as every writer of them does."""
    rows = Dependent.objects.filter(kind=CLAIM, namespace=namespace, name__in=names).order_by("pk")
    list(rows.select_for_update(no_key=True).values_list("pk"))


def _announce(namespace: str, names: Sequence[str], uid: object, now: datetime) -> None:
    """Makes the scheduler read the jobs that wait with these claims again, and tells readers of the claims of their phase."""
    if not names:
        return
    moved = journal.Action.MODIFIED
    claims = Dependent.objects.filter(kind=CLAIM, namespace=namespace, name__in=names).order_by("pk")
    uids = dict(claims.values_list("name", "uid"))
    shown = [journal.Change(CLAIM, namespace, name, str(uids[name]), moved) for name in uids]
    located = [journal.Change(CLAIM_LOCATION, namespace, name, str(uid), moved) for name in names]
    versions = journal.append([*located, *shown], now)
    for name, version in zip(uids, versions[len(located) :], strict=True):
        claims.filter(name=name).update(resource_version=version)
    cycle_requests.request()
