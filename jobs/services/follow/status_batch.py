"""Collects the changes that one batch of reports makes to jobs, and writes them in a fixed number of statements."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from fleet.changes import events
from fleet.models import Pod
from jobs import tracing
from jobs.core.failover.causes import Failure
from jobs.core.failover.rules import Outcome
from jobs.events import announce_jobs, job_event
from jobs.models import Job
from jobs.runtime.notices import StopRequest
from jobs.services.failover import evidence
from jobs.services.lifecycle import cycle_requests, works

Key = tuple[UUID, int]
"""A job's uid and the number of an attempt."""
_REPORTED = ("state", "status", "reason", "unhealthy_since", "started_at", "finished_at", "charge", "reclaim")


@dataclass
class StatusBatch:
    """The pending writes of one batch, and the pod data that its reports are judged by."""

    now: datetime
    failures: dict[Key, Failure] = field(default_factory=dict)
    """The failures of attempts that this batch reports as failed."""
    restarting: list[Pod] = field(default_factory=list)
    """Pods that have restarted too often."""
    created: Mapping[Key, int] = field(default_factory=dict)
    """The number of pods of each attempt that have not ended."""
    asked_to_stop: Mapping[Key, StopRequest] = field(default_factory=dict)
    """The attempts that were asked to stop, of those that this batch reports as ended."""
    failed: list[tuple[Job, Failure]] = field(default_factory=list)
    changed: list[Job] = field(default_factory=list)
    started: list[Job] = field(default_factory=list)
    ended_attempts: dict[tuple[Outcome, str], list[Job]] = field(default_factory=lambda: defaultdict(list))
    """Jobs whose current attempt ends, by outcome and message."""
    timeline: list[events.Line] = field(default_factory=list)
    new_timeline: list[events.Line] = field(default_factory=list)
    """Events that cannot repeat an earlier one, so that they need no merging: the first start of a job, and its end."""

    def failure_of(self, job: Job) -> Failure:
        """Returns why the current attempt failed; `write` stores it with the attempt."""
        key = (job.uid, job.attempt)
        failure = self.failures.get(key) or evidence.failures([key])[key]
        self.failed.append((job, failure))
        return failure

    def record(self, job: Job, reason: str, message: str, *, warning: bool = False) -> None:
        self.timeline.append(job_event(job, reason, message, warning=warning))

    def write(self) -> None:
        """Writes everything. The caller has locked the jobs."""
        # The journal comes last: a transaction that has its lock must not wait for rows whose holders may wait for the journal.
        if self.started:
            works.start_attempts(self.started, self.now)
            tracing.started(self.started, self.now)
        for (outcome, message), jobs in self.ended_attempts.items():
            works.end_attempts(jobs, outcome, message, self.now)
        for job, failure in self.failed:
            evidence.record(job, job.attempt, failure, self.now)
        if self.timeline:
            events.record_all(self.timeline, self.now)
        announce_jobs(self.changed, self.now, _REPORTED, self.new_timeline)
        if self.ended_attempts:
            cycle_requests.request()
