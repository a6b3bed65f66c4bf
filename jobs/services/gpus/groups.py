"""What the GPUs of each team or queue do: how many its running jobs have, how much those compute, and how many are idle.

What is not measured is counted as had and not as idle; a mean is of what is measured alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Sum

from fleet.core import gpu_readings
from jobs.models import Job
from jobs.services.gpus import usage
from jobs.services.gpus.usage import Namespaces

FIELDS: Mapping[str, str] = {"namespace": "namespace", "queue": "leaf"}
"""What jobs are grouped by, and the field of a job that has it."""


@dataclass(slots=True)
class GroupUse:
    name: str
    """Of the namespace, or the path of the queue; empty: jobs without one."""
    gpus: int = 0
    """Of its running jobs."""
    measured: int = 0
    """Of which the utilisation is known."""
    total: float = 0.0
    idle: int = 0
    """Allocated, and idle for as long as it takes to be listed as idle."""

    @property
    def utilization(self) -> float | None:
        return self.total / self.measured if self.measured else None


def of_groups(by: str, namespaces: Namespaces, now: datetime) -> list[GroupUse]:
    """Of running jobs of these namespaces with GPUs, those that have most first. ``by`` is a key of `FIELDS`."""
    field = FIELDS[by]
    running = Job.objects.filter(state=Job.State.RUNNING, gpus__gt=0)
    running = running if namespaces is None else running.filter(namespace__in=namespaces)
    counts = running.order_by().values_list(field).annotate(Sum("gpus"))
    groups = {name: GroupUse(name, gpus) for name, gpus in counts}
    least = timedelta(seconds=settings.CONVOY_GPUS.idle_s)
    uses = usage.join(usage.of_namespaces(usage.fresh(now), namespaces), namespaces)
    for use in usage.with_jobs(uses, namespaces):
        group = groups.get(getattr(use.job, field)) if use.job and use.job.state == Job.State.RUNNING else None
        if group is None:
            continue
        if use.reading.utilization is not None:
            group.measured += 1
            group.total += use.reading.utilization
        group.idle += gpu_readings.idle_for(use.reading, use.at) >= least
    return sorted(groups.values(), key=lambda group: (-group.gpus, group.name))
