"""Jobs whose GPUs are allocated and have done nothing for long: a list that people can act on.

A GPU counts only while its readings come: what is not measured is never called idle.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings

from fleet.core import gpu_readings
from jobs.models import Job
from jobs.services.gpus import usage
from jobs.services.gpus.usage import Namespaces

MOST = 500
"""Jobs in one answer."""
RUNNING = "Running"


@dataclass(slots=True)
class IdleJob:
    job: Job
    cluster: str
    since: datetime
    """Of the GPU that has been idle the longest."""
    idle_gpus: int = 0
    idle_s: float = 0.0
    """Of all its idle GPUs together, up to their last reading."""


@dataclass(frozen=True, slots=True)
class IdleJobs:
    minutes: float
    percent: float
    jobs: list[IdleJob]
    is_cut: bool


def find(namespaces: Namespaces, now: datetime) -> IdleJobs:
    """Of the jobs that the reader may see, what wastes most first."""
    least = timedelta(seconds=settings.CONVOY_GPUS.idle_s)
    rows = usage.of_namespaces(usage.fresh(now).filter(idle_since__lte=now - least), namespaces)
    uses = [use for use in usage.join(rows, namespaces) if gpu_readings.idle_for(use.reading, use.at) >= least]
    jobs: dict[UUID, IdleJob] = {}
    for use in usage.with_jobs(uses, namespaces):
        if use.job is None or use.job.state != RUNNING:
            continue
        since = datetime.fromisoformat(use.reading.idle_since)
        row = jobs.setdefault(use.job.uid, IdleJob(use.job, use.cluster, since))
        row.since = min(row.since, since)
        row.idle_gpus += 1
        row.idle_s += gpu_readings.idle_for(use.reading, use.at).total_seconds()
    ordered = sorted(jobs.values(), key=lambda row: (-row.idle_s, row.job.namespace, row.job.name))
    return IdleJobs(least.total_seconds() / 60, settings.CONVOY_GPUS.idle_percent, ordered[:MOST], len(ordered) > MOST)
