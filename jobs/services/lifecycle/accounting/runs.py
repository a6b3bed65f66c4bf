"""The attempts of jobs as runs, with the GPUs of each: what values over time are counted from.

The runs of a job that is deleted are kept beside its uid (`jobs.models.DeletedJob`) until they have been counted.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db.models import OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, NullIf

from jobs.core.failover.rules import Outcome
from jobs.core.series.recount import Run
from jobs.models import Attempt, DeletedJob, Job

_FAILED = frozenset({Outcome.FAILED, Outcome.REFUSED, Outcome.LOST, Outcome.VANISHED})
"""After such an attempt the next one is a failover."""
_FIELDS = (
    "cluster_name", "of_leaf", "job__namespace", "job__gpus", "placed_at", "started_at", "ended_at", "outcome", "gpus",
    "before", "job__submitted_by", "job__uid", "sizes",
)  # fmt: skip

_CHUNK = 2000


def between(begin: int, end: int, namespaces: Collection[str] | None = None) -> Iterator[Run]:
    """Runs that touch ``[begin, end)``, seconds since the epoch; those of jobs deleted meanwhile included. Two queries.

    ``namespaces``: only of their jobs. None: of all.
    """
    since, until = (datetime.fromtimestamp(at, UTC) for at in (begin, end))
    attempts = Attempt.objects.filter(Q(ended_at=None) | Q(ended_at__gte=since), placed_at__lt=until)
    if namespaces is not None:
        attempts = attempts.filter(job__namespace__in=list(namespaces))
    seen: set[UUID] = set()
    for uid, run in _runs_of(attempts):
        seen.add(uid)
        yield run
    deleted = DeletedJob.objects.filter(at__gte=since).values_list("uid", "runs")
    for uid, runs in deleted.iterator(chunk_size=_CHUNK):
        # A job that is deleted between the two queries is in both.
        for each in () if uid in seen else runs or ():  # none were kept by an older version
            run = Run(**each)
            if run.placed < end * 1000 and (namespaces is None or run.namespace in namespaces):
                yield run


def as_stored(job: Job, now: datetime) -> list[dict[str, Any]]:
    """Of a job that is about to be deleted: what has not ended by then ends now."""
    runs = _runs_of(Attempt.objects.filter(job=job))
    return [replace(run, ended=_ms(now) if run.ended is None else run.ended).as_json() for _, run in runs]


def _runs_of(attempts: QuerySet[Attempt]) -> Iterator[tuple[UUID, Run]]:
    before = Attempt.objects.order_by().filter(job=OuterRef("job"), number=OuterRef("number") - 1)
    leaf = Coalesce(NullIf("leaf", Value("")), "job__leaf")
    rows = attempts.order_by().annotate(before=Subquery(before.values("outcome")[:1]), of_leaf=leaf)
    listed = rows.values_list(*_FIELDS).iterator(chunk_size=_CHUNK)
    for cluster, leaf, namespace, whole, placed, started, ended, outcome, gpus, last, user, uid, sizes in listed:
        yield (
            uid,
            Run(
                cluster=cluster,
                leaf=leaf,
                namespace=namespace,
                gpus=whole if gpus is None else gpus,
                placed=_ms(placed),
                started=started and _ms(started),
                ended=ended and _ms(ended),
                preempted=outcome == Outcome.RECLAIMED,
                failover=last in _FAILED,
                user=user,
                sizes=sizes or (),
            ),
        )


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)
