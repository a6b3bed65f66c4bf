"""Journals and records changes of demand: which object a journal line or a timeline event is about.

A thin layer over `fleet.changes.events`, so that services say ``announce_jobs([...])`` and never spell a journal line.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol

from django.db import transaction
from django.db.models import Model

from fleet.changes import events, journal
from fleet.db import bulk, prepared
from fleet.db.prepared import KEY
from jobs.kinds import registry
from jobs.models import Job, Work


class Named(Protocol):
    kind: str
    namespace: str
    name: str

    @property
    def uid(self) -> object: ...


def change(row: Named, action: journal.Action = journal.Action.MODIFIED) -> journal.Change:
    group = registry.group_of(row.api_version) if isinstance(row, Job) else ""
    new_row = row if action is journal.Action.ADDED and isinstance(row, Model) else None
    return journal.Change(row.kind, row.namespace, row.name, str(row.uid), action, group, new_row)


def announce_jobs(
    jobs: Sequence[Job], now: datetime, columns: Sequence[str] = (), timeline_events: Sequence[events.Line] = ()
) -> None:
    """Journals that the jobs changed, stores their new resource versions and ``columns``, and records the timeline events.

    The jobs have to be locked when ``columns`` are given.
    """
    versions = events.announce([change(job) for job in jobs], now, timeline_events)
    for job, version in zip(jobs, versions, strict=True):
        job.resource_version = version
    bulk.update(jobs, [*columns, "resource_version"])


WORK = "Work"
CLAIM_LOCATION = "ClaimLocation"
"""Of the journal: where the data of a claim is has changed."""


@transaction.atomic(savepoint=False)
def announce_works(works: Iterable[Work], now: datetime) -> None:
    """Journals, for watches, that the works changed, under the uid of their job: changes of the job concern them as well.

    Call it last in a transaction: a holder of the job's rows may be waiting for the journal.
    """
    works = list(works)
    lines = [
        journal.Change(WORK, work.namespace, work_name(work), str(work.job_uid), journal.Action.MODIFIED)
        for work in works
    ]
    for work, version in zip(works, journal.append(lines, now), strict=True):
        work.resource_version = version
        _VERSION.run(pk=work.pk, version=version)


_VERSION = prepared.Update(
    lambda param: (Work.objects.filter(pk=param("pk", KEY)), {"resource_version": param("version", KEY)})
)


def work_name(work: Work) -> str:
    """The name of the Work object, cut to what the journal has room for."""
    return f"{work.name}-{work.kind.lower()}-{work.attempt}-{work.cluster.name}"[:253]


def job_event(job: Job, reason: str, message: str, *, warning: bool = False) -> events.Line:
    """Builds a timeline event of the job."""
    source = "default-scheduler" if reason.startswith("ScheduleBinding") else "convoy"
    return events.Line(change(job), reason, message, warning, source)


def record_event(job: Job, reason: str, message: str, now: datetime, *, warning: bool = False) -> None:
    """Adds an event to the job's timeline."""
    events.record_all([job_event(job, reason, message, warning=warning)], now)
