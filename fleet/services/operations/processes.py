"""Which of our own processes are alive, and the tidying that none of them does on its way."""

import os
import platform
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q

from fleet.changes import events, journal
from fleet.models import FieldOwners, Heartbeat, SigninLink
from fleet.services.auditing import audit_chain, audit_sinks

SILENT = timedelta(minutes=10)
"""A process that says nothing for this long is forgotten; long before that it counts as dead."""


def beat(role: str, now: datetime, instance: str = "") -> None:
    """This process, or the one named, is alive."""
    name = (instance or f"{platform.node()}:{os.getpid()}")[:128]
    if not Heartbeat.objects.filter(role=role, instance=name).update(at=now):
        Heartbeat.objects.update_or_create(role=role, instance=name, defaults={"at": now})


def beat_from_worker(now: datetime) -> None:
    """A periodic task was sent by beat and is run by this worker: both are alive."""
    beat("beat", now, instance="beat")
    beat("worker", now)


def tidy(now: datetime) -> None:
    """Deletes history beyond its retention, used links and dead processes."""
    FieldOwners.objects.filter(object_uid__in=journal.gone()).delete()
    journal.compact(settings.CONVOY_RETENTION.journal_lines)
    events.forget_old(now - timedelta(seconds=settings.CONVOY_RETENTION.events_s), now)
    audit_chain.forget(now - timedelta(seconds=settings.CONVOY_RETENTION.audit_s), audit_sinks.delivered())
    SigninLink.objects.filter(Q(expires_at__lt=now) | Q(used_at__lt=now)).delete()
    Heartbeat.objects.filter(at__lt=now - SILENT).delete()
