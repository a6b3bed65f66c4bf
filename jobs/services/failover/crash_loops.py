"""Pods that restart in place again and again: their job reports that it runs, and makes no progress.

Under ``restartPolicy: OnFailure`` or ``Always`` a member never ends such a job. From `crash_loop_restarts` on a pod counts
until it has kept running for half as long as an unhealthy job is tolerated; short runs between two crashes change nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings

from fleet.models import Pod
from jobs.models import Job
from jobs.snapshot import spec_of


@dataclass(frozen=True, slots=True)
class CrashLoop:
    pod: str
    restarts: int
    exit_code: int | None

    def __str__(self) -> str:
        code = f", last with exit code {self.exit_code}" if self.exit_code else ""
        return f"pod {self.pod} has restarted {self.restarts} times{code}"


def tolerated_s(job: Job) -> float:
    """Seconds that a crash loop is tolerated: as the policy says of an unhealthy job, else `crash_loop_s`."""
    by_policy = spec_of(job).application_toleration_s
    return settings.CONVOY_FAILOVER.crash_loop_s if by_policy is None else by_policy


def rows(uids: Iterable[object]) -> list[Pod]:
    """The pods of these jobs that have restarted too often and have not ended."""
    least = settings.CONVOY_FAILOVER.crash_loop_restarts
    pods = Pod.objects.filter(job_uid__in=list(uids), restarts__gte=least)
    return list(pods.exclude(phase__in=["Succeeded", "Failed"]).order_by("-restarts", "name"))


def find(job: Job, pods: Iterable[Pod], now: datetime, *, attempt: int | None = None) -> CrashLoop | None:
    """The worst crash loop of the job's current attempt among ``pods``, or of the given one: that of a share."""
    number = job.attempt if attempt is None else attempt
    current = [pod for pod in pods if pod.job_uid == job.uid and pod.attempt == number]
    # The policy is read for jobs with such pods only: this is asked at every report of every job.
    settled = timedelta(seconds=tolerated_s(job) / 2) if current else timedelta()
    for pod in current:
        if pod.running_since is None or now - pod.running_since < settled:
            return CrashLoop(pod.name, pod.restarts, pod.exit_code)
    return None
