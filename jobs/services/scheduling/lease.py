"""The scheduler lease: one process at a time may run cycles; its epoch makes late writes of a former holder void."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q
from structlog import get_logger

from fleet.models import Lease
from jobs.services.lifecycle import cycle_requests

log = get_logger(__name__)


def acquire(holder: str, now: datetime) -> int | None:
    """Takes the lease if it is free or has expired and returns its new epoch; None while another process holds it.

    An expiry further ahead than two terms comes from a clock that has jumped back since, and counts as expired.
    """
    term = _lease_time()
    lease, _ = Lease.objects.get_or_create(name=cycle_requests.LEASE)
    if lease.holder and lease.expires_at and now <= lease.expires_at <= now + 2 * term:
        return None
    takeable = Q(holder="") | Q(expires_at__lt=now) | Q(expires_at__gt=now + 2 * term)
    free = Lease.objects.filter(takeable, name=cycle_requests.LEASE)
    epoch = lease.epoch + 1
    if not free.filter(epoch=lease.epoch).update(holder=holder, epoch=epoch, expires_at=now + term):
        return None
    if lease.holder:
        log.warning("scheduler lease taken over", epoch=epoch, from_holder=lease.holder, expired_at=lease.expires_at)
    return epoch


def renew(epoch: int, now: datetime) -> bool:
    """Extends the lease by a term, and locks it until the transaction ends; False when it has been lost."""
    held = Lease.objects.filter(name=cycle_requests.LEASE, epoch=epoch).exclude(holder="")
    return held.update(expires_at=now + _lease_time()) == 1


def release(epoch: int) -> bool:
    """Gives the lease back; False when it was lost: its new holder has counted every request made until it took over."""
    return Lease.objects.filter(name=cycle_requests.LEASE, epoch=epoch).update(holder="") == 1


def _lease_time() -> timedelta:
    return timedelta(seconds=settings.CONVOY_SCHEDULER.lease_s)
