"""Which of our own processes are alive, and the tidying that none of them does on its way."""

import os
import platform
from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.db.models import Q

from fleet.changes import events, journal
from fleet.db import isolation
from fleet.models import FieldOwners, Heartbeat, LoginCode, SigninLink, SpentState
from fleet.services.auditing import audit_chain, audit_sinks
from fleet.services.gpus import storing
from fleet.services.logs import retention
from fleet.services.operations import clock_steps

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
    """Deletes history beyond its retention, used links and dead processes. What cannot be deleted keeps nothing else.

    What is kept for people waits for the sweep to look whether the clock has stepped.
    """
    steps = [_forget_fields, _forget_journal, _forget_links, _forget_dead]
    if clock_steps.is_followed(now):
        steps += [_forget_events, _forget_audit, _forget_logs, _forget_readings]
    for step in steps:
        isolation.run(f"retention.{step.__name__}", [], partial(step, now))


def _forget_fields(now: datetime) -> None:
    FieldOwners.objects.filter(object_uid__in=journal.gone()).delete()


def _forget_journal(now: datetime) -> None:
    journal.compact(settings.CONVOY_RETENTION.journal_lines)


def _forget_events(now: datetime) -> None:
    events.forget_old(_before(settings.CONVOY_RETENTION.events_s, now), now)


def _forget_audit(now: datetime) -> None:
    audit_chain.forget(_before(settings.CONVOY_RETENTION.audit_s, now), audit_sinks.delivered())


def _forget_logs(now: datetime) -> None:
    keep_s = settings.CONVOY_LOGS.keep_s
    retention.tidy(_before(keep_s, now) + timedelta(seconds=keep_s))


def _forget_readings(now: datetime) -> None:
    keep_s = settings.CONVOY_GPUS.keep_s
    storing.forget_readings(_before(keep_s, now) + timedelta(seconds=keep_s))


def _before(keep_s: float, now: datetime) -> datetime:
    return clock_steps.forgettable_before(timedelta(seconds=keep_s), now)


def _forget_links(now: datetime) -> None:
    for model in (SigninLink, LoginCode):
        model.objects.filter(Q(expires_at__lt=now) | Q(used_at__lt=now)).delete()
    SpentState.objects.filter(expires_at__lt=now).delete()


def _forget_dead(now: datetime) -> None:
    Heartbeat.objects.filter(at__lt=now - SILENT).delete()
