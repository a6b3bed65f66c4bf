"""From which nodes the volumes of claims are reached: asked of the cluster once a claim is bound to a volume there.

A volume on the disks of one node, or of one zone, says so (`nodeAffinity` of the PersistentVolume). The next job that mounts
the claim is placed on such nodes only: elsewhere in the cluster its pods would be pending for ever. The sweep finds what is to
be asked, and a worker asks, outside of any transaction. What is not bound yet is asked for again, later and later.
"""

from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Q
from structlog import get_logger

from fleet.changes import events
from fleet.db import clock
from fleet.kube.resources import VOLUME_CLAIMS, VOLUMES
from fleet.member.errors import MemberError
from fleet.models import Cluster
from fleet.services.members import member_clients
from jobs.core.gang import requirements
from jobs.models import ClaimLocation
from jobs.services.lifecycle import volume_claims

log = get_logger(__name__)

_BATCH = 50
_SOONEST, _LATEST = timedelta(seconds=20), timedelta(minutes=10)


def request_due(now: datetime) -> None:
    for pk in _due(now).order_by(F("read_due_at").asc(nulls_first=True)).values_list("pk", flat=True)[:_BATCH]:
        events.enqueue("jobs.read_volume", pk)


def read(pk: int, now: datetime) -> bool:
    """Asks for one claim, if that is due and no other worker does. Returns whether the nodes of its volume are known now."""
    location = _due(now).filter(pk=pk).select_related("cluster").first()
    if location is None or not _postpone(location, now):
        return False
    try:
        volume = _volume(location)
    except MemberError as e:
        log.info("the volume of a claim was not read", claim=str(location), cluster=location.cluster.name, error=str(e))
        return False
    return volume is not None and volume_claims.reached_from(location, requirements.volume_terms(volume), now)


def _due(now: datetime) -> Any:
    """A time beyond any wait is from before the clock was set back."""
    is_due = Q(read_due_at=None) | Q(read_due_at__lte=now) | Q(read_due_at__gt=now + _LATEST + clock.STEP)
    return ClaimLocation.objects.filter(is_due, node_terms__isnull=True, cluster__state=Cluster.State.READY)


def _postpone(location: ClaimLocation, now: datetime) -> bool:
    """Moves the next try into the future, so that only this worker makes this one."""
    wait = min(max((now - location.created_at) / 4, _SOONEST), _LATEST)
    unclaimed = ClaimLocation.objects.filter(pk=location.pk, read_due_at=location.read_due_at)
    return unclaimed.update(read_due_at=now + wait) == 1


def _volume(location: ClaimLocation) -> dict[str, Any] | None:
    """The PersistentVolume that the claim is bound to in its cluster; None: none yet."""
    client = member_clients.client(location.cluster)
    claim = client.get(VOLUME_CLAIMS.path(location.namespace, location.name))
    name = (claim.get("spec") or {}).get("volumeName")
    return client.get(VOLUMES.path(name=str(name))) if name else None
