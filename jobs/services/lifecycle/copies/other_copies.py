"""Finds copies of earlier attempts that may run beside the job's current copy, for every page that shows the job.

A new attempt is sent although an older copy is not removed yet only if that copy is in a cluster that does not answer: the
older attempt number fences it when the cluster returns (invariant I4). Until it is removed, both may run. Read only.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from fleet.models import Cluster
from jobs import snapshot
from jobs.core.division import shares
from jobs.core.failover.rules import Outcome
from jobs.core.policies.unreachable import Unreachable
from jobs.models import Attempt, Job, Work

POSSIBLE, OVER = "TwoCopiesPossible", "TwoCopiesOver"
"""Reasons of events: a copy was sent beside another one, and the other one is gone."""
_SENT = (Work.State.SENDING, Work.State.APPLIED)
_MAY_RUN = (*_SENT, Work.State.SUSPENDING, Work.State.WITHDRAWING)
_HAS_ENDED = (Outcome.SUCCEEDED, Outcome.REFUSED)


class CopyCode(StrEnum):
    UNREACHABLE = "CopyUnreachable"
    STOPPING = "CopyBeingStopped"


@dataclass(frozen=True, slots=True)
class OtherCopy:
    code: CopyCode
    attempt: int
    cluster: str
    since: datetime | None
    """When the job left the attempt."""
    current: int
    """The attempt that counts."""

    @property
    def message(self) -> str:
        both = f"The copy of attempt {self.attempt} on {self.cluster} may run beside attempt {self.current}"
        if self.code is CopyCode.UNREACHABLE:
            return f"{both}: {self.cluster} does not answer, and the copy is stopped once it does"
        return f"{both} until it is stopped there, which has been requested"


def beside(job: Job, *, sending: int | None = None) -> list[OtherCopy]:
    """Copies of attempts that do not count, beside at least one that does. ``sending`` counts as sent."""
    if job.finished or job.attempt < 2 and not job.shares:
        return []
    counting = shares.counting(job.shares, job.attempt)
    copies = list(Work.objects.filter(job_uid=job.uid).select_related("cluster").defer("cluster__access"))
    current = [work.attempt for work in copies if work.attempt in counting and work.state in _SENT]
    current += [sending] if sending is not None and sending in counting else []
    if not current:
        return []
    attempts = {each.number: each for each in Attempt.objects.filter(job=job)}
    former = [work for work in copies if work.attempt not in counting and _is_replaced(job, work.attempt)]
    if any(work.fenced for work in former) and snapshot.spec_of(job).unreachable is Unreachable.FENCE:
        # The next attempt was sent only when the agent there must have stopped it.
        former = [work for work in former if not work.fenced]
    former.sort(key=lambda work: work.attempt)
    # The shares of a divided job that were sent before this one was lost do other parts of the work.
    others = (_other(work, attempts.get(work.attempt), max(current)) for work in former if max(current) > work.attempt)
    return [other for other in others if other is not None]


def _is_replaced(job: Job, attempt: int) -> bool:
    """Whether other shares of a divided job have taken over what the share of this attempt had."""
    lost = shares.find(job.shares, attempt)
    if lost is None:
        return True
    completions = shares.divisible(job.roles) or 0
    return not shares.may_return(job.roles[0]["replicas"], completions, shares.of_stored(job.shares), lost)


def _other(work: Work, attempt: Attempt | None, current: int) -> OtherCopy | None:
    if work.state not in _MAY_RUN or (attempt and attempt.outcome in _HAS_ENDED):
        return None
    code = CopyCode.STOPPING if work.cluster.state == Cluster.State.READY else CopyCode.UNREACHABLE
    return OtherCopy(code, work.attempt, work.cluster.name, attempt.ended_at if attempt else None, current)


def warning(job: Job, sending: int) -> str:
    """The message of the event when this attempt is sent beside others; empty if there are none."""
    return "; ".join(other.message for other in beside(job, sending=sending))


def end_of(job: Job, work: Work) -> str:
    """The message of the event when a copy is gone that may have run beside another; empty if it did not."""
    counting = shares.counting(job.shares, job.attempt)
    if job.finished or work.attempt in counting:
        return ""
    sent = Work.objects.filter(job_uid=job.uid, attempt__in=counting, attempt__gt=work.attempt, state__in=_SENT)
    if not sent.exists():
        return ""
    return f"The copy of attempt {work.attempt} on {work.cluster.name} is gone: it does not run beside another one any more"
