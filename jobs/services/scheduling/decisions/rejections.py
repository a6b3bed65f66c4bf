"""Keeps one gang that the database refuses from stopping the fleet: the rest of the plan is written without it.

A plan is written at once. Only when the database refuses it, it is written again in halves, each a guarded transaction of its
own, down to the gangs that are refused by themselves. Savepoints inside one transaction would not do: foreign keys are checked
at the commit, and a second gang's rows would be locked after the journal (`jobs.services.lifecycle.locks`).
"""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime

from django.conf import settings
from django.db import DataError, IntegrityError
from django.db.models import Max
from structlog import get_logger

from fleet.changes import events
from fleet.models import Hold
from jobs import metrics
from jobs.core.admission.plans import Plan
from jobs.core.explain import timeline, waited_codes
from jobs.core.preemption.planner import PreemptionPlan
from jobs.core.reasons import Code, Reason
from jobs.events import announce_jobs, job_event
from jobs.models import Attempt, Job, Work

log = get_logger(__name__)

_TEXT = 300


@dataclass(frozen=True, slots=True)
class Written:
    placed: Set[int] = frozenset()
    """Jobs."""
    versions: Sequence[int] = ()
    """Journal versions of the plan's own writes, which the scheduler's cache knows already."""
    rejected: Mapping[int, str] = field(default_factory=dict)
    """Job -> what the database refused."""

    def __add__(self, other: "Written") -> "Written":
        return Written(
            self.placed | other.placed, (*self.versions, *other.versions), {**self.rejected, **other.rejected}
        )


Write = Callable[[Plan, PreemptionPlan | None], Written | None]


def write(once: Write, plan: Plan, orders: PreemptionPlan | None) -> Written | None:
    """Writes a plan without the gangs that the database refuses. None when the lease was lost on the way."""
    try:
        return once(plan, orders)
    except (IntegrityError, DataError) as error:
        parts = _parts(plan, orders)
        if not parts:
            return _rejected(plan, error)
    written = Written()
    for part, its_orders in parts:
        more = write(once, part, its_orders)
        if more is None:
            return None
        written += more
    return written


def _parts(plan: Plan, orders: PreemptionPlan | None) -> list[tuple[Plan, PreemptionPlan | None]]:
    """The plan in two parts; preemptions last, as they make room for gangs that were not placed. Empty: one gang is left."""
    placed, waits = plan.placed, plan.waits
    if placed and (waits or orders):
        return [(replace(plan, waits=[]), None), (replace(plan, placed=[]), orders)]
    if waits and orders:
        return [(plan, None), (replace(plan, waits=[]), orders)]
    if (count := len(placed) + len(waits)) < 2:
        return []
    half = count // 2
    if placed:
        return [(replace(plan, placed=some), None) for some in (placed[:half], placed[half:])]
    return [(replace(plan, waits=some), None) for some in (waits[:half], waits[half:])]


def _rejected(plan: Plan, error: IntegrityError | DataError) -> Written:
    gangs = [assignment.gang for assignment in plan.placed] + [wait.gang for wait in plan.waits]
    if not gangs:
        raise error
    words = str(error).replace("\0", "").partition("\n")[0][:_TEXT]
    return Written(rejected={gang.job_id: words for gang in gangs})


def record_refused(jobs: Sequence[Job], errors: Mapping[int, str], now: datetime) -> None:
    """Writes into locked jobs that wait that the database refused their placement."""
    messages = {}
    for job in jobs:
        left = _in_the_way(job)
        cause = f"{left} is in the way ({errors[job.pk]})" if left else f"the database refused it ({errors[job.pk]})"
        messages[job.pk] = f"its placement could not be stored: {cause}"
        job.attempt = max(job.attempt, _highest(job))
        log.error("placement rejected", job=str(job), error=errors[job.pk])
        metrics.REJECTED.inc()
    _record(jobs, messages, now)


def record_failed(jobs: Sequence[Job], errors: Mapping[int, str], now: datetime) -> None:
    """Writes into locked jobs that wait that planning them raised."""
    cause = "an error in Convoy, which its log has in full as `isolated failure`"
    _record(jobs, {job.pk: f"its placement could not be planned: {errors[job.pk]} ({cause})" for job in jobs}, now)


def _record(jobs: Sequence[Job], messages: Mapping[int, str], now: datetime) -> None:
    """Writes the reason, and schedules the cycle that tries them again."""
    again = f"tried again in {settings.CONVOY_SCHEDULER.rejected_retry_s:g} s"
    timeline_events = []
    for job in jobs:
        message = f"{messages[job.pk]}; {again}; to start it now, delete it and submit the job again"
        before, job.reason = job.reason, {**Reason(Code.PLAN_REJECTED, message).as_json(), "at": now.isoformat()}
        job.waited_codes = waited_codes.enter_code(job.waited_codes, before, job.reason, now)
        timeline_events.append(job_event(job, Code.PLAN_REJECTED, message, warning=True))
        job.waited = timeline.enter_owner(job.waited, timeline.owner_of(job.reason), now)
    if jobs:
        announce_jobs(jobs, now, ["reason", "waited", "waited_codes", "attempt"], timeline_events)
        events.enqueue("jobs.schedule", countdown_s=settings.CONVOY_SCHEDULER.rejected_retry_s)


def _in_the_way(job: Job) -> str:
    """A record of an attempt that the job has not begun, which a new placement would collide with; empty: none."""
    work = Work.objects.filter(job_uid=job.uid, attempt__gt=job.attempt).select_related("cluster").first()
    if work:
        return f"the record of a copy of attempt {work.attempt} on {work.cluster.name}"
    hold = Hold.objects.filter(job_uid=job.uid, attempt__gt=job.attempt).select_related("cluster").first()
    if hold:
        return f"a hold of attempt {hold.attempt} on {hold.cluster.name}"
    number = Attempt.objects.filter(job=job, number__gt=job.attempt).values_list("number", flat=True).first()
    return f"the record of attempt {number}" if number else ""


def _highest(job: Job) -> int:
    """The highest number that is stored for an attempt of the job: the next is above it."""
    rows = (Work.objects.filter(job_uid=job.uid), Hold.objects.filter(job_uid=job.uid))
    numbers = [queryset.aggregate(number=Max("attempt"))["number"] or 0 for queryset in rows]
    return max(*numbers, Attempt.objects.filter(job=job).aggregate(number=Max("number"))["number"] or 0)


def waiting() -> int:
    """The number of jobs that wait because their placement could not be planned or stored."""
    return Job.objects.filter(
        state__in=Job.WAITING, reason_code=Code.PLAN_REJECTED, suspended=False, deleting_at__isnull=True
    ).count()


def problem() -> str:
    count = waiting()
    jobs = "1 job is" if count == 1 else f"{count} jobs are"
    return f"{jobs} not placed because of an error: see the reason PlanRejected" if count else ""
