"""Reports charges and holds that cannot be read: an event for each job, and a line on the system page."""

from datetime import datetime

from jobs import snapshot_rows
from jobs.events import record_event
from jobs.models import Job

EVENT = "RecordUnreadable"


def record(now: datetime) -> None:
    """Records an event for each row that this process could not read since the last call."""
    unread = snapshot_rows.take_unread()
    for job in Job.objects.filter(uid__in=unread) if unread else ():
        message = (
            f"{unread[str(job.uid)]}: what the job asks for in total counts instead, and other jobs are placed. It is mended by"
            " suspending and resuming the job"
        )
        record_event(job, EVENT, message, now, warning=True)


def problem() -> str:
    unreadable = snapshot_rows.unreadable()
    if not unreadable:
        return ""
    jobs = "1 job has a charge or hold" if len(unreadable) == 1 else f"{len(unreadable)} jobs have charges or holds"
    return f"{jobs} that cannot be read: see events {EVENT}"
