"""One action on many jobs: previewed job by job, done job by job, and a refusal of one stops no other.

Each job is a transaction of its own: a failure in the middle leaves those before it done, and says so.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from fleet.errors import ConvoyError
from jobs.core.failover.lifecycle import Action
from jobs.models import Job
from jobs.services.submission.changes import actions

MOST = 1000
"""Jobs in one call."""


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


Refusal = Callable[[Job], str]
"""Why this caller may not; empty when he may."""


def run(
    action: Action,
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
        _one(action, jobs[uid], refuses, by, now, preview) if uid in jobs else _absent(uid)
        for uid in dict.fromkeys(uids)
    ]


def _absent(uid: UUID) -> ActionResult:
    return ActionResult(uid, "", "", False, "there is no such job any more", 0)


def _one(action: Action, job: Job, refuses: Refusal, by: str, now: datetime, preview: bool) -> ActionResult:
    why = refuses(job) or actions.allowed(job, action)
    if not why and not preview:
        why = _do(action, job, by, now)
    return ActionResult(job.uid, job.namespace, job.name, not why, why, job.gpus)


def _do(action: Action, job: Job, by: str, now: datetime) -> str:
    act = {Action.SUSPEND: actions.suspend, Action.RESUME: actions.resume, Action.DELETE: actions.delete}
    try:
        act[action](job, by=by, now=now)
    except ConvoyError as e:
        return e.message
    return ""
