"""Keeps the end of the logs of pods that a work is about to stop: their member deletes the logs with the pods.

It never holds up the work: what cannot be read within `_WAIT_S` is read when a worker comes to it, while the pods save their
work in their grace period, and again when their end is seen.
"""

from fleet.models import EndedPod, Pod
from fleet.services.logs import reading, recording
from fleet.services.logs.reading import Clock
from jobs.models import Work

_WAIT_S = 1.0
_AT_ONCE = 16
"""Pods whose logs are read before the work goes on: those of the primary role and the first of the others."""


def keep(work: Work, clock: Clock) -> None:
    """Records the running pods of the work as stopping, once, and reads the first logs if the member answers."""
    recorded = EndedPod.objects.filter(job_uid=work.job_uid, attempt=work.attempt).values("uid")
    pods = Pod.objects.filter(job_uid=work.job_uid, attempt=work.attempt, cluster=work.cluster, phase="Running")
    pods = pods.exclude(uid__in=recorded)
    stopping = recording.record_stopping(work.cluster, pods.order_by("index", "role", "name"), clock())
    if work.cluster.failing_since is None:
        reading.read_before_stop(stopping[:_AT_ONCE], clock, _WAIT_S)
