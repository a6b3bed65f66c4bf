"""Detects crash loops: pods that restart in place again and again, while their job reports that it is running.

Under ``restartPolicy: OnFailure`` or ``Always`` a member never ends such a job. A pod is in a crash loop after
`crash_loop_restarts` restarts, until it has run without a restart for half of the time that an unhealthy job is tolerated. One
that runs since a time that is yet to come did so before the clock was set back: its next restart says whether it loops still.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings

from fleet.db import clock
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
    """How many seconds a crash loop is tolerated: the toleration of the policy's application failover, else `crash_loop_s`."""
    by_policy = spec_of(job).application_toleration_s
    return settings.CONVOY_FAILOVER.crash_loop_s if by_policy is None else by_policy


def rows(uids: Collection[object]) -> list[Pod]:
    """The pods of these jobs that have restarted too often and have not ended."""
    if not uids:
        return []
    least = settings.CONVOY_FAILOVER.crash_loop_restarts
    pods = Pod.objects.filter(job_uid__in=list(uids), restarts__gte=least)
    return list(pods.exclude(phase__in=["Succeeded", "Failed"]).order_by("-restarts", "name"))


def find(job: Job, pods: Iterable[Pod], now: datetime, *, attempt: int | None = None) -> CrashLoop | None:
    """The worst crash loop among the ``pods`` of the given attempt; of the job's current attempt if none is given.

    ``pods`` are those that `rows` returns.
    """
    number = job.attempt if attempt is None else attempt
    restarting = [pod for pod in pods if pod.job_uid == job.uid and pod.attempt == number]
    # The policy is read only if there are such pods, because this runs for every report of every job.
    stable_after = timedelta(seconds=tolerated_s(job) / 2) if restarting else timedelta()
    for pod in restarting:
        if pod.running_since is None or -clock.STEP <= now - pod.running_since < stable_after:
            return CrashLoop(pod.name, pod.restarts, pod.exit_code)
    return None
