"""How changes of demand are told: which object a journal line or a timeline line is about.

A thin layer over `fleet.events`, so that services say ``announce_jobs([...])`` and never spell a journal line.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from fleet import bulk, events, journal
from jobs.kinds import registry
from jobs.models import Job


class Named(Protocol):
    kind: str
    namespace: str
    name: str

    @property
    def uid(self) -> object: ...


def change(row: Named, action: journal.Action = journal.Action.MODIFIED) -> journal.Change:
    group = registry.group_of(row.api_version) if isinstance(row, Job) else ""
    return journal.Change(row.kind, row.namespace, row.name, str(row.uid), action, group)


def announce_jobs(jobs: Sequence[Job], now: datetime) -> None:
    """Journals that the jobs changed and gives each its new resource version."""
    versions = events.announce([change(job) for job in jobs], now)
    for job, version in zip(jobs, versions, strict=True):
        job.resource_version = version
    bulk.update(jobs, ["resource_version"])


def line(job: Job, reason: str, message: str, *, warning: bool = False) -> events.Line:
    """Of the job's timeline."""
    source = "default-scheduler" if reason.startswith("ScheduleBinding") else "convoy"
    return events.Line(change(job), reason, message, warning, source)


def say(job: Job, reason: str, message: str, now: datetime, *, warning: bool = False) -> None:
    """Adds a line to the job's timeline."""
    events.record_all([line(job, reason, message, warning=warning)], now)
