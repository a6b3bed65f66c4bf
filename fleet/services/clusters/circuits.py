"""The circuit breaker of each member: one that leaves dispatches unanswered gets nothing but a probe now and then.

Its state is in the cluster's row, so all workers share it and none has to live for it. A probe is a dispatch like any other;
it is claimed by moving the time of the next one, so a worker that dies with it delays the next by one interval.
"""

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from structlog import get_logger

from fleet import metrics
from fleet.changes import events
from fleet.db.clock import STEP
from fleet.models import Cluster
from fleet.services.clusters import clusters

log = get_logger(__name__)

FIELDS = ("unanswered", "circuit_opened_at", "circuit_probe_at")


def blocked(now: Any, latest_probe: Any) -> Q:
    """Clusters with an open circuit whose next probe is not due."""
    return Q(circuit_probe_at__gt=now, circuit_probe_at__lte=latest_probe)


def latest_probe(now: datetime) -> datetime:
    """A time beyond any interval is of a clock that was wrong."""
    return now + 2 * _interval()


def may_dispatch(cluster: Cluster, now: datetime) -> bool:
    """Whether the circuit is closed by ``cluster``, which was just read, or this dispatch is its probe."""
    if cluster.circuit_opened_at is None:
        return True
    rows = Cluster.objects.filter(pk=cluster.pk)
    return bool(rows.exclude(blocked(now, latest_probe(now))).update(circuit_probe_at=now + _interval()))


def no_contact(cluster: Cluster, now: datetime) -> None:
    """The dispatch ended before anything was asked of the member: the probe, if it was one, is free for another."""
    Cluster.objects.filter(pk=cluster.pk, circuit_probe_at__gt=now).update(circuit_probe_at=now)


def unanswered(cluster: Cluster, error: str, now: datetime) -> bool:
    """Counts a dispatch without an answer; returns whether the circuit is open."""
    rows = Cluster.objects.filter(pk=cluster.pk)
    rows.update(unanswered=F("unanswered") + 1)
    with transaction.atomic():
        row = rows.select_for_update(no_key=True).first()
        if row is None or row.unanswered < settings.CONVOY_MEMBERS.circuit_failures:
            return False
        if row.circuit_opened_at is None:
            row.circuit_opened_at, row.circuit_probe_at = now, now + _interval()
            _announce(row, now)
            events.record(clusters.change(row), "CircuitOpened", row.circuit_message, now, warning=True)
            metrics.CIRCUITS_OPENED.labels(row.name).inc()
            log.warning("circuit opened", cluster=row.name, unanswered=row.unanswered, error=error)
    return True


def answered(cluster: Cluster, now: datetime, *, at: datetime) -> None:
    """The member answered a dispatch at ``at``; what waited for that is signalled to the apps above.

    An answer from before the circuit opened is no evidence against the failures that opened it.
    """
    if not Cluster.objects.filter(pk=cluster.pk).filter(~Q(unanswered=0) | Q(circuit_opened_at__isnull=False)).exists():
        return
    with transaction.atomic():
        row = Cluster.objects.select_for_update(no_key=True).filter(pk=cluster.pk).first()
        if row is not None and not _is_older(at, row.circuit_opened_at, now):
            _close(row, "the cluster answers dispatches again", now)


def _is_older(at: datetime, opened_at: datetime | None, now: datetime) -> bool:
    # An opening that is yet to come is of a clock that was wrong.
    return opened_at is not None and at < opened_at <= now + STEP


def close_idle(cluster: Cluster, now: datetime) -> None:
    """Closes an open circuit when nothing is left to be dispatched: there would never be a probe."""
    with transaction.atomic():
        open_circuits = Cluster.objects.filter(circuit_opened_at__isnull=False)
        row = open_circuits.select_for_update(no_key=True).filter(pk=cluster.pk).first()
        if row is not None:
            _close(row, "nothing is to be dispatched to the cluster any more", now)


def _close(row: Cluster, message: str, now: datetime) -> None:
    opened_at = row.circuit_opened_at
    row.unanswered, row.circuit_opened_at, row.circuit_probe_at = 0, None, None
    if opened_at is None:
        row.save(update_fields=FIELDS)
        return
    clusters.announce(row, FIELDS, now)
    events.record(clusters.change(row), "CircuitClosed", message, now)
    log.info("circuit closed", cluster=row.name, message=message, seconds=round((now - opened_at).total_seconds(), 1))


def _announce(row: Cluster, now: datetime) -> None:
    """Without the signal of a changed cluster: nothing can be done there that could not be done before."""
    [row.resource_version] = events.announce([clusters.change(row)], now)
    row.save(update_fields=[*FIELDS, "resource_version"])


def _interval() -> timedelta:
    return timedelta(seconds=settings.CONVOY_MEMBERS.circuit_probe_s)
