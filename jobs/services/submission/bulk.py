"""One action on many jobs: previewed job by job, done job by job, and a refusal of one stops no other.

Each job is a transaction of its own: a failure in the middle leaves those before it done, and says so. What a preview cannot
know from the job's state alone is done and taken back, so that it refuses what the action would refuse.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from fleet.changes import dry_runs
from fleet.errors import ConvoyError
from jobs.core.failover.lifecycle import Action
from jobs.core.resizing import bounds
from jobs.models import Job
from jobs.services.lifecycle import sizes
from jobs.services.submission import steering
from jobs.services.submission.changes import actions, queue_moves, resizing

MOST = 1000
"""Jobs in one call."""


class BulkAction(StrEnum):
    SUSPEND = "suspend"
    RESUME = "resume"
    DELETE = "delete"
    PRIORITY = "priority"
    MOVE = "move"
    SCALE = "scale"
    PREEMPT = "preempt"
    RESUBMIT = "resubmit"


VERBS: Mapping[BulkAction, str] = {
    BulkAction.SUSPEND: "suspend",
    BulkAction.RESUME: "resume",
    BulkAction.DELETE: "delete",
    BulkAction.PRIORITY: "apply",
    BulkAction.MOVE: "move",
    BulkAction.SCALE: "apply",
    BulkAction.PREEMPT: "suspend",
    BulkAction.RESUBMIT: "apply",
}
"""What the caller has to be allowed."""


@dataclass(frozen=True, slots=True)
class Order:
    """An action, with what it needs to know: one of the other fields, for those that change a value."""

    action: BulkAction
    priority: int = 0
    queue: str = ""
    role: str = ""
    replicas: int = 0


@dataclass(frozen=True, slots=True)
class ActionResult:
    """What became, or would become, of one job."""

    uid: UUID
    namespace: str
    name: str
    done: bool
    """In a preview: that it would be."""
    message: str
    """Why not; empty when it is."""
    gpus: int
    """Held by it now: what the action frees, or asks for again."""
    before: str = ""
    """The value that is changed: a priority, a queue, a size, the cluster it leaves; empty for others."""
    after: str = ""
    """What it becomes, or the name under which the job is submitted again."""


Refusal = Callable[[Job], str]
"""Why this caller may not; empty when he may."""


def run(
    order: Order,
    uids: Sequence[UUID],
    rows: QuerySet[Job],
    refuses: Refusal,
    *,
    by: str,
    now: datetime,
    preview: bool = False,
) -> list[ActionResult]:
    """In the order given; ``rows`` are those that the caller may see, and one that is not among them is listed as refused."""
    jobs = {job.uid: job for job in rows}
    return [
        _one(order, jobs[uid], refuses, by, now, preview) if uid in jobs else _absent(uid)
        for uid in dict.fromkeys(uids)
    ]


def _absent(uid: UUID) -> ActionResult:
    return ActionResult(uid, "", "", False, "there is no such job any more", 0)


def _one(order: Order, job: Job, refuses: Refusal, by: str, now: datetime, preview: bool) -> ActionResult:
    why, change = refuses(job), ("", "")
    if not why and order.action in _SWITCHES:
        why = actions.allowed(job, _SWITCHES[order.action]) or ("" if preview else _do(order, job, by, now)[0])
    elif not why:
        why, change = _do(order, job, by, now, takes_back=preview)
    return ActionResult(job.uid, job.namespace, job.name, not why, why, job.gpus, *change)


def _do(order: Order, job: Job, by: str, now: datetime, *, takes_back: bool = False) -> tuple[str, tuple[str, str]]:
    """Why it was refused, or what changed."""
    try:
        with dry_runs.taken_back() if takes_back else transaction.atomic():
            change = _ACTS[order.action](order, job, by, now)
    except ConvoyError as e:
        return e.message, ("", "")
    return "", change


_SWITCHES = {
    BulkAction.SUSPEND: Action.SUSPEND,
    BulkAction.RESUME: Action.RESUME,
    BulkAction.DELETE: Action.DELETE,
}
_Act = Callable[[Order, Job, str, datetime], tuple[str, str]]


def _switch(order: Order, job: Job, by: str, now: datetime) -> tuple[str, str]:
    act = {Action.SUSPEND: actions.suspend, Action.RESUME: actions.resume, Action.DELETE: actions.delete}
    act[_SWITCHES[order.action]](job, by=by, now=now)
    return "", ""


def _reprioritize(order: Order, job: Job, by: str, now: datetime) -> tuple[str, str]:
    return str(job.priority), str(steering.reprioritize(job, order.priority, by=by, now=now).priority)


def _move(order: Order, job: Job, by: str, now: datetime) -> tuple[str, str]:
    return job.leaf, queue_moves.move(job, order.queue, by=by, now=now).leaf


def _scale(order: Order, job: Job, by: str, now: datetime) -> tuple[str, str]:
    before = sizes.asked_for(job)
    after = sizes.asked_for(resizing.resize(job, {order.role: order.replicas}, by=by, now=now))
    return _sizes(before), _sizes(after)


def _sizes(by_role: bounds.Sizes) -> str:
    return ", ".join(f"{size} {role}" for role, size in by_role.items())


def _preempt(order: Order, job: Job, by: str, now: datetime) -> tuple[str, str]:
    cluster = job.cluster.name if job.cluster else ""
    steering.preempt(job, by=by, now=now)
    return cluster, ""


def _resubmit(order: Order, job: Job, by: str, now: datetime) -> tuple[str, str]:
    return job.name, steering.resubmit(job, by=by, now=now)


_ACTS: Mapping[BulkAction, _Act] = {
    **dict.fromkeys(_SWITCHES, _switch),
    BulkAction.PRIORITY: _reprioritize,
    BulkAction.MOVE: _move,
    BulkAction.SCALE: _scale,
    BulkAction.PREEMPT: _preempt,
    BulkAction.RESUBMIT: _resubmit,
}
