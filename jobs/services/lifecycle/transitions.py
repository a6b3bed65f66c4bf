"""Takes the transitions of jobs and works from the model of their life (`jobs.core.life`): nothing else writes a state.

Rows are moved by conditional updates whose condition is the model's, so that an event that came too late changes nothing. An
object that is saved by its caller is moved by `enter`, under the lock of its row.
"""

from typing import Any

from django.db.models import QuerySet

from jobs.core.life.jobs import JOB, JobEvent
from jobs.core.life.works import WORK, WorkEvent
from jobs.models import Job, Work


def enter(job: Job, event: JobEvent) -> None:
    """Sets the state after the event; raises `IllegalTransition` where it cannot happen. The caller saves the job."""
    job.state = JOB.after(job.state, event)


def move_jobs(rows: QuerySet[Job], event: JobEvent, **fields: Any) -> int:
    """Moves those of the jobs that the event can happen to; returns how many."""
    return rows.filter(state__in=JOB.sources(event)).update(state=JOB.target(event), **fields)


def job_move(rows: QuerySet[Job], event: JobEvent, **fields: Any) -> tuple[QuerySet[Job], dict[str, Any]]:
    """The same as `move_jobs`, for `fleet.db.prepared.Update`. Of a new reason give the code as well."""
    return rows.filter(state__in=JOB.sources(event)), {"state": str(JOB.target(event)), **fields}


def works_for(rows: QuerySet[Work], event: WorkEvent) -> QuerySet[Work]:
    """Those of the works that the event can happen to."""
    return rows.filter(state__in=WORK.sources(event))


def move_works(rows: QuerySet[Work], event: WorkEvent, **fields: Any) -> int:
    """Moves those of the works that the event can happen to; returns how many."""
    return works_for(rows, event).update(state=WORK.target(event), **fields)


def work_move(rows: QuerySet[Work], event: WorkEvent, **fields: Any) -> tuple[QuerySet[Work], dict[str, Any]]:
    """The same as `move_works`, for `fleet.db.prepared.Update`."""
    return works_for(rows, event), {"state": str(WORK.target(event)), **fields}
