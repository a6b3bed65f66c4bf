"""From which nodes the volumes of claims are reached: asked of the cluster once a claim is bound to a volume there.

A volume on the disks of one node, or of one zone, says so (`nodeAffinity` of the PersistentVolume). The next job that mounts
the claim is placed on such nodes only: elsewhere in the cluster its pods would be pending for ever. The sweep finds what is to
be asked, and a worker asks, outside of any transaction. What is not bound yet is asked for again, later and later. What is
known is asked for again while jobs of its namespace wait: the claim may have been made anew elsewhere, or be gone.
"""

from datetime import datetime, timedelta
from threading import BoundedSemaphore
from typing import Any

from django.db.models import F, Q, QuerySet
from structlog import get_logger

from fleet.changes import events
from fleet.db import clock, prepared
from fleet.db.prepared import TIME, Param
from fleet.kube.resources import VOLUME_CLAIMS, VOLUMES
from fleet.member.errors import MemberError, MemberMissing
from fleet.models import Cluster
from fleet.services.members import member_clients, pod_logs
from jobs import snapshot
from jobs.core.gang import requirements
from jobs.models import ClaimLocation
from jobs.services.lifecycle import volume_claims

log = get_logger(__name__)

_BATCH = 50
_SOONEST, _LATEST = timedelta(seconds=20), timedelta(minutes=10)
_AT_ONCE = 2
"""Reads of one process: members that hang must leave it threads for the rest."""
_places = BoundedSemaphore(_AT_ONCE)


def request_due(now: datetime) -> None:
    """What is not known yet comes first."""
    times = clock.due_times(now, _LATEST)
    for (pk,) in [*_UNKNOWN.values(**times), *_KNOWN.values(**times)][:_BATCH]:
        events.enqueue("jobs.read_volume", pk)


def _in_turn(param: Param) -> QuerySet[ClaimLocation]:
    return _due(param("now", TIME), param("beyond", TIME)).order_by(F("read_due_at").asc(nulls_first=True))


def _unknown(param: Param) -> QuerySet[ClaimLocation, Any]:
    return _in_turn(param).filter(node_terms__isnull=True).values_list("pk")[:_BATCH]


def _known(param: Param) -> QuerySet[ClaimLocation, Any]:
    namespaces = snapshot.waiting_jobs().order_by().values("namespace")
    return _in_turn(param).filter(node_terms__isnull=False, namespace__in=namespaces).values_list("pk")[:_BATCH]


_UNKNOWN, _KNOWN = prepared.Rows(_unknown), prepared.Rows(_known)


def read(pk: int, now: datetime) -> bool:
    """Asks for one claim, if that is due and no other worker does. Returns whether something else is known of it now."""
    if not _places.acquire(blocking=False):
        return False
    try:
        return _read(pk, now)
    finally:
        _places.release()


def _read(pk: int, now: datetime) -> bool:
    location = _due(**clock.due_times(now, _LATEST)).filter(pk=pk).select_related("cluster").first()
    if location is None or not _postpone(location, now):
        return False
    try:
        claim = _claim(location)
        if claim is None:
            return volume_claims.missing(location, now)
        name = (claim.get("spec") or {}).get("volumeName")
        terms = requirements.volume_terms(_get(location, VOLUMES.path(name=str(name)))) if name else None
    except MemberError as e:
        log.info("the volume of a claim was not read", claim=str(location), cluster=location.cluster.name, error=str(e))
        return False
    return volume_claims.reached_from(location, terms, now)


def _claim(location: ClaimLocation) -> dict[str, Any] | None:
    try:
        return _get(location, VOLUME_CLAIMS.path(location.namespace, location.name))
    except MemberMissing:
        return None


def _due(now: Any, beyond: Any) -> QuerySet[ClaimLocation]:
    is_due = Q(read_due_at=None) | clock.is_due("read_due_at", now, beyond)
    return ClaimLocation.objects.filter(is_due, cluster__state=Cluster.State.READY)


def _postpone(location: ClaimLocation, now: datetime) -> bool:
    """Moves the next try into the future, so that only this worker makes this one."""
    wait = min(max((now - location.created_at) / 4, _SOONEST), _LATEST) if location.node_terms is None else _LATEST
    unclaimed = ClaimLocation.objects.filter(pk=location.pk, read_due_at=location.read_due_at)
    location.read_due_at = now + wait
    return unclaimed.update(read_due_at=location.read_due_at) == 1


def _get(location: ClaimLocation, path: str) -> dict[str, Any]:
    return member_clients.client(location.cluster, timeout_s=pod_logs.ANSWER_S).get(path)
