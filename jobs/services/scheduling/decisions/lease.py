"""The scheduler lease: one process at a time may run cycles; its epoch makes late writes of a former holder void."""

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from structlog import get_logger

from fleet.db import prepared
from fleet.db.prepared import KEY, TEXT, TIME, Param
from fleet.models import Lease
from jobs.services.lifecycle import cycle_requests

log = get_logger(__name__)


def acquire(holder: str, now: datetime) -> int | None:
    """Takes the lease if it is free or has expired and returns its new epoch; None while another process holds it.

    An expiry further ahead than two terms comes from a clock that has jumped back since, and counts as expired.
    """
    term = _lease_time()
    known = _LEASE.objects(name=cycle_requests.LEASE)
    lease = known[0] if known else Lease.objects.get_or_create(name=cycle_requests.LEASE)[0]
    if lease.holder and lease.expires_at and now <= lease.expires_at <= now + 2 * term:
        return None
    epoch, end = lease.epoch + 1, {"now": now, "end": now + term, "too_far": now + 2 * term}
    if not _TAKE.run(name=cycle_requests.LEASE, seen=lease.epoch, holder=holder, epoch=epoch, **end):
        return None
    if lease.holder:
        log.warning("scheduler lease taken over", epoch=epoch, from_holder=lease.holder, expired_at=lease.expires_at)
    return epoch


def renew(epoch: int, now: datetime) -> bool:
    """Extends the lease by a term, and locks it until the transaction ends; False when it has been lost."""
    return _RENEW.run(name=cycle_requests.LEASE, epoch=epoch, end=now + _lease_time()) == 1


def wait_for_writers() -> None:
    """Returns once every plan is committed that was being written: what was committed before is read by all later ones."""
    with transaction.atomic():
        list(Lease.objects.select_for_update(no_key=True).filter(name=cycle_requests.LEASE))


def release(epoch: int) -> bool:
    """Gives the lease back; False when it was lost: its new holder has counted every request made until it took over."""
    return _RELEASE.run(name=cycle_requests.LEASE, epoch=epoch) == 1


def _of_epoch(param: Param) -> QuerySet[Lease]:
    return Lease.objects.filter(name=param("name", TEXT), epoch=param("epoch", KEY))


def _taking(param: Param) -> tuple[QuerySet[Lease], dict[str, Any]]:
    free = Q(holder="") | Q(expires_at__lt=param("now", TIME)) | Q(expires_at__gt=param("too_far", TIME))
    rows = Lease.objects.filter(free, name=param("name", TEXT), epoch=param("seen", KEY))
    return rows, {"holder": param("holder", TEXT), "epoch": param("epoch", KEY), "expires_at": param("end", TIME)}


_LEASE = prepared.Rows(lambda param: Lease.objects.filter(name=param("name", TEXT)))
_TAKE = prepared.Update(_taking)
_RENEW = prepared.Update(lambda param: (_of_epoch(param).exclude(holder=""), {"expires_at": param("end", TIME)}))
_RELEASE = prepared.Update(lambda param: (_of_epoch(param), {"holder": ""}))


def _lease_time() -> timedelta:
    return timedelta(seconds=settings.CONVOY_SCHEDULER.lease_s)
