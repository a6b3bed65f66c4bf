"""Works as rows: claiming one, giving it back, ending it. No member is touched here.

A claim is a conditional update, so exactly one worker talks to a member about a work; a claim older than its term belongs to
a worker that died. Results are recorded under the claim only.
"""

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache, partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Window
from django.db.models.functions import RowNumber

from fleet.changes import events
from fleet.core.members.health import UNJUDGED
from fleet.db import prepared
from fleet.db.prepared import KEY, NUMBER, TEXT, TIME, UID, Param
from fleet.models import Cluster, Hold
from fleet.services.clusters import circuits
from jobs import metrics
from jobs.core.division import shares
from jobs.core.failover.rules import Outcome
from jobs.core.life.works import ACTIONABLE, WORK, WorkEvent
from jobs.models import Attempt, Binding, Job, Work
from jobs.services.lifecycle import transitions

State = Work.State
ENDING = (State.SUSPENDING, State.WITHDRAWING)
IN_MEMBER = (State.SENDING, State.APPLIED, State.SUSPENDING, State.SUSPENDED, State.WITHDRAWING, State.KEPT)
"""States in which the member may hold a copy."""


_PER_MEMBER = 16
"""How many works of one member are pushed at once. More would only wait for their lane (`jobs.services.dispatch.lanes`)."""
_MOST_PUSHED = 1000
UNCLAIMED: Mapping[str, Any] = {"claim": "", "claimed_at": None}
"""For a work that has nothing to be done any more: its claimant may be dead, and writes nothing once its claim is gone."""


_RESIZES = Q(state=State.APPLIED, resize_wanted__gt=F("resize_done"))
"""Of applied works those whose copy has to be brought to the size in force."""


def new_row(job: Job, attempt: int, event: WorkEvent, now: datetime) -> dict[str, Any]:
    """The fields of a new work for one attempt of a job; its cluster and how it is sent are for the caller to add."""
    return {
        "job_uid": job.uid,
        "attempt": attempt,
        "api_version": job.api_version,
        "kind": job.kind,
        "namespace": job.namespace,
        "name": job.name,
        "state": WORK.target(event),
        "due_at": now,
        "created_at": now,
    }


def resizing() -> QuerySet[Work]:
    """Works whose copy has to be brought to the size in force, now or later. Not `actionable`: they have their own index."""
    return Work.objects.filter(_RESIZES)


def actionable() -> QuerySet[Work]:
    """Works of which something is to be done in their member, now or later."""
    return Work.objects.filter(state__in=ACTIONABLE)


def due(now: datetime) -> QuerySet[Work]:
    """Works that are due and that no live worker has claimed. A time beyond any wait is a clock that jumped back.

    Nothing is ended in a member that does not answer: in a lost cluster that would be tried for each job again and again, at
    the expense of moving them. What waits so is pushed by `jobs.services.follow.sweep` once it answers. Nothing at all is
    done in one whose circuit is open, until its next probe is due.
    """
    return _due(actionable(), **_times_of_due(now))


def _times_of_due(now: datetime) -> dict[str, datetime]:
    claim_ends = timedelta(seconds=settings.CONVOY_DISPATCH.claim_s)
    longest_wait = 2 * timedelta(seconds=settings.CONVOY_DISPATCH.longest_retry_s)
    claims = {"died": now - claim_ends, "too_far": now + claim_ends}
    return {"now": now, **claims, "beyond": now + longest_wait, "probed_by": circuits.latest_probe(now)}


def _due(rows: QuerySet[Work], *, now: Any, died: Any, too_far: Any, beyond: Any, probed_by: Any) -> QuerySet[Work]:
    free = Q(claim="") | Q(claimed_at__lt=died) | Q(claimed_at__gt=too_far)
    ripe = Q(due_at__lte=now) | Q(due_at__gt=beyond)
    silent = Exists(Cluster.objects.filter(pk=OuterRef("cluster_id"), state=Cluster.State.UNKNOWN))
    blocked = Exists(Cluster.objects.filter(circuits.blocked(now, probed_by), pk=OuterRef("cluster_id")))
    return rows.filter(free, ripe, ~Q(state__in=(*ENDING, State.APPLIED)) | ~silent, ~blocked)


def to_push(now: datetime) -> list[int]:
    """Keys of the works that are due, those that resize first; at most `_MOST_PUSHED` of either.

    The first work of every member comes before any second one, so that a member with thousands of due works does not use up
    the limit.
    """
    times = _times_of_due(now)
    return [pk for (pk,) in [*_RESIZES_TO_PUSH.values(**times), *_TO_PUSH.values(**times)]]


def _in_turn(param: Param) -> QuerySet[Work, Any]:
    turn = Window(RowNumber(), partition_by=F("cluster_id"), order_by=[F("due_at"), F("pk")])
    rows = _due_by(param, actionable()).annotate(turn=turn).filter(turn__lte=_PER_MEMBER)
    return rows.order_by("turn", "due_at").values_list("pk")[:_MOST_PUSHED]


_TO_PUSH = prepared.Rows(_in_turn)
_RESIZES_TO_PUSH = prepared.Rows(
    lambda param: _due_by(param, resizing()).order_by("due_at").values_list("pk")[:_MOST_PUSHED]
)


@transaction.atomic
def make_due(rows: QuerySet[Work], now: datetime) -> list[int]:
    """Makes those of the works that need action due now; skips rows that another transaction is changing."""
    locked = (
        rows.filter(Q(state__in=ACTIONABLE) | _RESIZES).order_by("pk").select_for_update(no_key=True, skip_locked=True)
    )
    pks = list(locked.values_list("pk", flat=True))
    Work.objects.filter(pk__in=pks).update(due_at=now)
    return pks


def claim(pk: int, now: datetime) -> Work | None:
    """Claims the work for `DispatchSettings.claim_s`; None when there is nothing to do or another worker has it."""
    token = uuid.uuid4().hex
    if not _CLAIM.run(pk=pk, token=token, **_times_of_due(now)):
        return None
    work = next(iter(_CLAIMED.objects(pk=pk, token=token)), None)
    if work is not None and not circuits.may_dispatch(work.cluster, now):
        Work.objects.filter(pk=pk, claim=token).update(claim="", claimed_at=None, tries=F("tries") - 1)
        return None
    return work


def _due_by(param: Param, rows: QuerySet[Work]) -> QuerySet[Work]:
    """As `_due`, at the times of a prepared statement."""
    return _due(rows, **{name: param(name, TIME) for name in ("now", "died", "too_far", "beyond", "probed_by")})


def _claiming(param: Param) -> tuple[QuerySet[Work], dict[str, Any]]:
    any_action = Work.objects.filter(Q(state__in=ACTIONABLE) | _RESIZES)
    rows = _due_by(param, any_action)
    changes = {"claim": param("token", TEXT), "claimed_at": param("now", TIME), "tries": F("tries") + 1}
    return rows.filter(pk=param("pk", KEY)), changes


_CLAIM = prepared.Update(_claiming)
_CLAIMED = prepared.Rows(
    lambda param: Work.objects.select_related("cluster").filter(pk=param("pk", KEY), claim=param("token", TEXT))
)


class ClaimLost(Exception):
    """The claim has ended, or the work is to do something else now: the claimant must not write to the member."""


def renew(work: Work, now: datetime) -> None:
    """Raises `ClaimLost` unless the claim and the state are as the claimant saw them; an ageing claim begins anew.

    Called before each write to a member: a claimant that was paused for longer than its claim must not act on it.
    """
    claimed = {"pk": work.pk, "claim": work.claim, "state": str(work.state)}
    fresh = (
        work.claimed_at is not None
        and abs(now - work.claimed_at) < timedelta(seconds=settings.CONVOY_DISPATCH.claim_s) / 3
    )
    if not (_STILL_CLAIMED.values(**claimed) if fresh else _RENEW.run(**claimed, now=now)):
        raise ClaimLost(f"{work} is not ours to do any more")
    work.claimed_at = work.claimed_at if fresh else now


def hold(work: Work) -> None:
    """Raises `ClaimLost` unless claim and state are as the claimant saw them; they stay so until the caller's transaction ends.

    It does not wait for a transaction that is changing the work: that may wait for rows that the caller has locked.
    """
    rows = Work.objects.filter(pk=work.pk, claim=work.claim, state=work.state)
    if not rows.select_for_update(no_key=True, skip_locked=True).values_list("pk").first():
        raise ClaimLost(f"{work} is not ours to record any more")


def _claimed(param: Param) -> QuerySet[Work]:
    return Work.objects.filter(pk=param("pk", KEY), claim=param("claim", TEXT), state=param("state", TEXT))


_STILL_CLAIMED = prepared.Rows(lambda param: _claimed(param).values_list("pk"))
_RENEW = prepared.Update(lambda param: (_claimed(param), {"claimed_at": param("now", TIME)}))


def advance(work: Work, event: WorkEvent, **fields: object) -> bool:
    """Moves the work from the state the claimant saw; False when it has been given another state meanwhile."""
    changes = {f"new_{name}": value for name, value in fields.items()}
    claimed = {"pk": work.pk, "claim": work.claim, "state": str(work.state)}
    if not _advance_by(event, tuple(fields)).run(**claimed, **changes):
        return False
    work.state = WORK.target(event)
    return True


@cache
def _advance_by(event: WorkEvent, names: tuple[str, ...]) -> prepared.Update:
    fields: dict[str, Any] = {name: Work._meta.get_field(name) for name in names}

    def build(param: Param) -> tuple[QuerySet[Work], dict[str, Any]]:
        changes = {name: param(f"new_{name}", field) for name, field in fields.items()}
        return transitions.work_move(_claimed(param), event, **changes)

    return prepared.Update(build)


def order(rows: QuerySet[Work], event: WorkEvent, now: datetime) -> None:
    """Requests what the event asks of the members, of those of the works that it can happen to."""
    pks = list(transitions.works_for(rows, event).values_list("pk", flat=True))
    transitions.move_works(Work.objects.filter(pk__in=pks), event, due_at=now, tries=0)
    for pk in pks:
        events.enqueue("jobs.push", pk)


def give_back(work: Work, now: datetime, *, message: str = "", wait_s: float | None = None) -> bool:
    """Ends the claim; the work is tried again after a wait that doubles with each try, or after ``wait_s``.

    Returns False, and changes nothing, if the claim was lost before. A wait of known length is no failure, so that the next
    failure waits briefly again. A work that became due during the claim, for example because the member reported that the copy
    is gone, is tried again at once.
    """
    wait = min(0.2 * 2 ** min(work.tries, 10), settings.CONVOY_DISPATCH.longest_retry_s) if wait_s is None else wait_s
    ended: dict[str, Any] = {"claim": "", "claimed_at": None, "message": message[:500]}
    if wait_s is not None:
        ended["tries"] = work.tries = 0
    claimed = Work.objects.filter(pk=work.pk, claim=work.claim)
    if not claimed.filter(due_at=work.due_at).update(due_at=now + timedelta(seconds=wait), **ended):
        if not claimed.update(**ended):
            return False
        wait = 0
    if Work.objects.filter(pk=work.pk, state__in=ACTIONABLE).exclude(state=work.state).update(due_at=now):
        events.enqueue("jobs.push", work.pk)
    elif work.state in ACTIONABLE or work.is_resizing:
        events.enqueue("jobs.push", work.pk, countdown_s=wait)
    return True


def drop_unsent(jobs: Sequence[Job], now: datetime) -> None:
    """Ends works that were never sent, and releases their holds."""
    unsent = Work.objects.filter(job_uid__in=[job.uid for job in jobs], state=State.PENDING, claim="")
    unsent_keys = list(unsent.values_list("pk", flat=True))
    if not unsent_keys or not transitions.move_works(unsent.filter(pk__in=unsent_keys), WorkEvent.DROPPED):
        return
    gone = set(Work.objects.filter(pk__in=unsent_keys, state=State.GONE).values_list("job_uid", "attempt"))
    held = Hold.objects.filter(job_uid__in=[uid for uid, _ in gone], released_at__isnull=True)
    theirs = [pk for pk, *key in held.values_list("pk", "job_uid", "attempt") if tuple(key) in gone]
    Hold.objects.filter(pk__in=theirs, released_at__isnull=True).update(released_at=now)


def suspend_copies(jobs: Sequence[Job], now: datetime) -> None:
    """Requests the suspension of every copy of the jobs that was sent."""
    drop_unsent(jobs, now)
    order(Work.objects.filter(job_uid__in=[job.uid for job in jobs]), WorkEvent.SUSPENSION_REQUESTED, now)


def withdraw(job: Job, now: datetime) -> int:
    """Requests the removal of every copy of the job; returns how many are not gone yet."""
    drop_unsent([job], now)
    works_of_job = Work.objects.filter(job_uid=job.uid)
    left = works_of_job.exclude(state=State.GONE)
    transitions.move_works(left, WorkEvent.WITHDRAWN, due_at=now, tries=0)
    for pk in left.values_list("pk", flat=True):
        events.enqueue("jobs.push", pk)
    return left.count()


def withdraw_live(job: Job, now: datetime, *, ended: Sequence[int]) -> None:
    """Requests the removal of every copy of a finished job that may still run.

    The copies of the attempts in ``ended`` have ended by their member's word: they stay there, so that their logs can be
    read, and hold nothing. So do copies that the policy leaves for a person to look at.
    """
    drop_unsent([job], now)
    for attempt in ended:
        release_hold(job.uid, attempt, now)
    works_of_job = Work.objects.filter(job_uid=job.uid)
    order(works_of_job.exclude(attempt__in=ended, state=State.APPLIED), WorkEvent.SUPERSEDED, now)


def withdraw_attempt(job: Job, attempt: int, now: datetime) -> None:
    """Requests the removal of the copy of one attempt."""
    works_of_attempt = Work.objects.filter(job_uid=job.uid, attempt=attempt)
    if transitions.move_works(works_of_attempt.filter(claim=""), WorkEvent.DROPPED):
        release_hold(job.uid, attempt, now)
    order(works_of_attempt, WorkEvent.WITHDRAWN, now)


def asked_since(job: Job, attempt: int, placed: datetime) -> datetime | None:
    """Since when the attempt's cluster has had the order to run it; None: it has not got it yet.

    A copy that waits until an older one is gone, or for a worker of ours, is no fault of the cluster or the job.
    """
    work = Work.objects.filter(job_uid=job.uid, attempt=attempt).only("state", "applied_at").first()
    if work is None or work.state == State.PENDING:
        return None
    return max(placed, work.applied_at or placed)


@transaction.atomic
def restart_start_timeout(job: Job, now: datetime) -> None:
    """For an attempt that was placed or sent later than now, before the clock was set back."""
    Binding.objects.filter(job=job, scheduled_at__gt=now).update(scheduled_at=now)
    Work.objects.filter(job_uid=job.uid, attempt=job.attempt, applied_at__gt=now).update(applied_at=now)


def release_hold(job_uid: uuid.UUID, attempt: int, now: datetime) -> bool:
    """Releases the hold of an undone or ended placement; True when there was one."""
    held = Hold.objects.filter(job_uid=job_uid, attempt=attempt, released_at__isnull=True)
    return held.update(released_at=now) > 0


def start_attempts(jobs: Iterable[Job], now: datetime) -> None:
    """Records, once, when the current attempts of the jobs began to run."""
    for number, same_number in _by_attempt(jobs):
        pks = [job.pk for job in same_number]
        if _START.run(jobs=pks, number=number, now=now) and number > 1:
            ends = _ENDS.values(jobs=pks, number=number - 1)
            transaction.on_commit(partial(_count_restarts, ends, now), robust=True)


def _count_restarts(ends: Iterable[tuple[str, datetime]], now: datetime) -> None:
    for outcome, ended_at in ends:
        metrics.RESTART_SECONDS.labels(outcome).observe(max((now - ended_at).total_seconds(), 0.0))


def follow_runtime(work: Work, now: datetime) -> None:
    """Lets what the runtime of the attempt says be read from now on."""
    Attempt.objects.filter(job__uid=work.job_uid, number=work.attempt).update(facts_due_at=now)


def end_attempts(jobs: Iterable[Job], outcome: Outcome, message: str, now: datetime) -> None:
    """Closes the current attempts of jobs that end, once, and releases their holds."""
    for number, same_number in _by_attempt(jobs):
        outcome_fields = {"outcome": str(outcome), "message": message[:500]}
        _END.run(jobs=[job.pk for job in same_number], number=number, now=now, **outcome_fields)
        _RELEASE.run(uids=[job.uid for job in same_number], number=number, now=now)


def _current(param: Param) -> QuerySet[Attempt]:
    return Attempt.objects.filter(job__pk__in=param("jobs", KEY), number=param("number", NUMBER))


def _starting(param: Param) -> tuple[QuerySet[Attempt], dict[str, Any]]:
    return _current(param).filter(started_at__isnull=True), {"started_at": param("now", TIME)}


def _ends(param: Param) -> QuerySet[Attempt, Any]:
    return _current(param).filter(ended_at__isnull=False).order_by().values_list("outcome", "ended_at")


def _ending(param: Param) -> tuple[QuerySet[Attempt], dict[str, Any]]:
    outcome_fields = {"outcome": param("outcome", TEXT), "message": param("message", TEXT)}
    return _current(param).filter(ended_at__isnull=True), {"ended_at": param("now", TIME), **outcome_fields}


def _releasing(param: Param) -> tuple[QuerySet[Hold], dict[str, Any]]:
    held = Hold.objects.filter(job_uid__in=param("uids", UID), attempt=param("number", NUMBER))
    return held.filter(released_at__isnull=True), {"released_at": param("now", TIME)}


_ENDS = prepared.Rows(_ends)
_START, _END, _RELEASE = prepared.Update(_starting), prepared.Update(_ending), prepared.Update(_releasing)


def _by_attempt(jobs: Iterable[Job]) -> Iterable[tuple[int, list[Job]]]:
    """The jobs by the number of their current attempt: for most it is the first."""
    jobs_by_number: dict[int, list[Job]] = defaultdict(list)
    for job in jobs:
        jobs_by_number[job.attempt].append(job)
    return sorted(jobs_by_number.items())


def end_attempt(job: Job, outcome: Outcome, message: str, now: datetime) -> None:
    """Closes the job's current attempt, once; of a job that is divided, those of all its shares."""
    numbers = shares.counting(job.shares, job.attempt)
    current = Attempt.objects.filter(job=job, number__in=numbers, ended_at__isnull=True)
    current.update(ended_at=now, outcome=outcome, message=message[:500])


def correct_outcome(job: Job, attempt: int, outcome: Outcome, message: str, now: datetime) -> None:
    """Gives a closed attempt the outcome that became known later."""
    attempts = Attempt.objects.filter(job=job, number=attempt)
    attempts.update(ended_at=now, outcome=outcome, message=message[:500], **Attempt.NO_FAILURE)


def older_copy(work: Work, job: Job, *, may_run: Callable[[Work], bool]) -> Work | None:
    """A copy of an earlier attempt that may still run, on this cluster or on one that could run it beside the new copy.

    A copy in a cluster that does not answer counts only if it ``may_run`` there by the job's policy.
    """
    older = Work.objects.filter(job_uid=work.job_uid, attempt__lt=work.attempt)
    older = older.exclude(state__in=[Work.State.GONE, Work.State.KEPT])
    older = older.exclude(attempt__in=shares.counting(job.shares, job.attempt))
    older = older.select_related("cluster").defer("cluster__access")
    return next((copy for copy in older if copy.cluster_id == work.cluster_id or _may_run_beside(copy, may_run)), None)


def _may_run_beside(copy: Work, may_run: Callable[[Work], bool]) -> bool:
    cluster = copy.cluster
    if cluster.state == Cluster.State.READY:
        return True
    return not cluster.drained and (cluster.state_reason in UNJUDGED or may_run(copy))
