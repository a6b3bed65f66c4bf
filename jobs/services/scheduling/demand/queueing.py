"""The queues as people see them: who stands where, behind whom, and why; and a job moved to another queue.

A queue unit is not a row of its own: it is a job that belongs to a leaf of the quota tree. The order here is the order of
`quotas.core.queues.order` within one queue.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from fleet.db.prepared import TEXT, Rows
from fleet.errors import Conflict, FieldFault, InvalidInput
from jobs import snapshot
from jobs.core.reasons import AWAITS_JOBS, Code
from jobs.events import announce_jobs, record_event
from jobs.models import Job
from jobs.services.lifecycle import cycle_requests
from jobs.services.lifecycle.accounting import attempt_leaves
from quotas import queries
from quotas.core.trees.tree import QueuePolicy
from quotas.models import Queue


class Phase(StrEnum):
    """As the QueueUnit's manifest spells it."""

    ENQUEUED = "Enqueued"
    DEQUEUED = "Dequeued"
    RUNNING = "Running"
    BACKOFF = "Backoff"
    SUCCEED = "Succeed"
    FAILED = "Failed"


PHASES: Mapping[str, Phase] = {
    Job.State.QUEUED: Phase.ENQUEUED,
    Job.State.SUSPENDED: Phase.ENQUEUED,
    Job.State.PLACED: Phase.DEQUEUED,
    Job.State.DISPATCHED: Phase.DEQUEUED,
    Job.State.MOVING: Phase.DEQUEUED,
    Job.State.RUNNING: Phase.RUNNING,
    Job.State.BACKOFF: Phase.BACKOFF,
    Job.State.RECLAIMING: Phase.BACKOFF,
    Job.State.SUCCEEDED: Phase.SUCCEED,
    Job.State.FAILED: Phase.FAILED,
}
_LEFT_OUT = ("manifest", "status", "roles")
_ORDER = ("-priority", "queued_at", "namespace", "name", "pk")


@dataclass(frozen=True, slots=True)
class QueueUnit:
    job: Job
    phase: Phase
    position: int | None
    """From 1, among those who wait in its queue; None: it does not wait."""
    ahead: str
    """``namespace/name`` of the job directly before it that can start at all; empty: none."""
    blocker: str
    """The job whose wait holds up the queue; empty: none does."""
    message: str

    @property
    def queue(self) -> str:
        """The full path of its leaf."""
        return str(self.job.leaf)

    @property
    def attempts(self) -> int:
        return int(self.job.attempt)


def units(*, leaf: str = "", namespace: str = "", phase: Phase | None = None) -> QuerySet[Job]:
    """The jobs that have a place in a queue, in the order of the queues; for a door to page and then `describe`."""
    rows = Job.objects.exclude(leaf="").defer(*_LEFT_OUT)
    if leaf:
        rows = rows.filter(leaf=leaf)
    if namespace:
        rows = rows.filter(namespace=namespace)
    if phase is not None:
        rows = rows.filter(state__in=[state for state, its_phase in PHASES.items() if its_phase is phase])
    return rows.order_by("leaf", *_ORDER)


def describe(jobs: Iterable[Job]) -> list[QueueUnit]:
    """A page of `units`, each with its place; one query, however many."""
    page = list(jobs)
    places = _places(page)
    return [_unit(job, *places.get(job.pk, (None, ""))) for job in page]


def _unit(job: Job, position: int | None, ahead: str) -> QueueUnit:
    reason: dict[str, Any] = job.reason or {}
    blocker = str((reason.get("quota") or {}).get("blocker", ""))
    return QueueUnit(job, PHASES[job.state], position, ahead, blocker, str(reason.get("message", "")))


def _places(page: Sequence[Job]) -> dict[int, tuple[int, str]]:
    """Of those who wait: the position, and who is ahead; from the names of all who wait in their queues.

    A job that can never start delays no other, except in a queue whose policy lets no job pass the one before it.
    """
    wait = {job.pk for job in page if job.state in Job.WAITING and job.charge is None}
    if not wait:
        return {}
    leaves = {job.leaf for job in page if job.pk in wait}
    blocking = _blocking_leaves(leaves)
    line = snapshot.waiting_jobs().filter(leaf__in=leaves, charge__isnull=True).order_by("leaf", *_ORDER)
    positions: dict[int, tuple[int, str]] = {}
    leaf, position, ahead = "", 0, ""
    for pk, queue, namespace, name, code in line.values_list("pk", "leaf", "namespace", "name", "reason__code"):
        if queue != leaf:
            leaf, position, ahead = queue, 0, ""
        if pk in wait:
            positions[pk] = position + 1, ahead
        if code not in AWAITS_JOBS and (code != Code.NEVER_FITS or queue in blocking):
            position, ahead = position + 1, f"{namespace}/{name}"
    return positions


def _blocking_leaves(leaves: Iterable[str]) -> set[str]:
    """Queues whose policy makes all jobs wait for the first one."""
    tree, _ = snapshot.tree_in_force()
    known = tree.by_path if tree else {}
    return {leaf for leaf in leaves if leaf in known and known[leaf].attributes.queue_policy is QueuePolicy.BLOCK}


@transaction.atomic
def move(job: Job, leaf: str, *, by: str, now: datetime) -> Job:
    """Lets a waiting job wait in another queue, where it stays whatever its label and namespace say."""
    tree = queries.tree()
    if tree is None or leaf not in {each.path for each in tree.leaves}:
        raise InvalidInput(f"{leaf} is no leaf of the quota tree", (FieldFault("queue", f"{leaf} is no leaf"),))
    refuse_closed([leaf])
    waiting = snapshot.waiting_jobs().filter(pk=job.pk, charge__isnull=True)
    if not waiting.update(leaf=leaf, leaf_fault="", pinned=True):
        raise Conflict(f"{job} cannot move to another queue: only a job that waits and runs nowhere can")
    attempt_leaves.keep([job.pk], job.leaf)
    fresh = Job.objects.get(pk=job.pk)
    record_event(fresh, "MovedToQueue", f"{by} moved it from {job.leaf or 'no queue'} to {leaf}", now)
    announce_jobs([fresh], now)
    cycle_requests.request()
    return fresh


_CLOSED = Rows(
    lambda param: Queue.objects.filter(
        path__in=param("paths", TEXT), state__in=[Queue.State.DRAINING, Queue.State.STOPPED]
    ).order_by("path")
)


def refuse_closed(leaves: Iterable[str]) -> None:
    """Raises `Conflict` when the queue of a leaf, or one above it, takes no more jobs."""
    paths = {leaf[:end] for leaf in leaves for end in range(len(leaf) + 1) if end == len(leaf) or leaf[end] == "/"} - {
        ""
    }
    closed = _CLOSED.objects(paths=list(paths))
    if closed:
        queue = closed[0]
        verb = "drains" if queue.state == Queue.State.DRAINING else "is stopped"
        raise Conflict(
            f"queue {queue.path} ({queue.name}) {verb} and takes no more jobs: open it, or use another queue"
        )
