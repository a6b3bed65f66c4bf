"""The spans of jobs for accounting: derived from rows while a job may go on, and appended to `UsageSpan` once it has ended.

Spans of an attempt follow from its own times, those of waiting from the job's timeline. A job's spans are appended in one
transaction with the mark that they are (`Job.accounted`), by the sweep or by the deletion, so they are there exactly once.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.fields.json import KT
from django.db.models.functions import Coalesce

from fleet.core import devices, prices
from fleet.core.prices import MODEL_LABELS
from fleet.db import prepared
from fleet.db.prepared import TIME
from fleet.models import Cluster, Node, Pod
from fleet.services.operations import clock_steps
from jobs.core.explain import accounting, timeline, waited_codes
from jobs.core.explain.accounting import SAVED, UNSAVED, Span
from jobs.core.explain.timeline import Owner
from jobs.core.preemption import cost
from jobs.models import Attempt, Job, Notice, UsageSpan
from jobs.services.lifecycle.locks import lock_jobs

SEVERAL = "several models"
"""Of a cluster whose nodes differ: which of them an attempt had is not kept."""
_KEPT = timedelta(days=800)
_BATCH = 200
_CHUNK = 500
_JOB = (
    "pk", "uid", "namespace", "name", "submitted_by", "leaf", "gpus", "created_at", "finished_at", "waited", "waited_codes",
    "kind", "manifest__metadata__annotations", "status__conditions",
)  # fmt: skip


def settle(now: datetime) -> int:
    """Appends the spans of jobs that have ended, a batch of them; returns of how many."""
    ended = [pk for (pk,) in _TO_SETTLE.values()]
    count = _settle(ended, now) if ended else 0
    if _ANY_OLD.values(before=now - _KEPT):
        UsageSpan.objects.filter(end__lt=clock_steps.forgettable_before(_KEPT, now)).delete()
    return count


@transaction.atomic
def _settle(ended: list[int], now: datetime) -> int:
    pks = lock_jobs(_to_settle().filter(pk__in=ended))
    if pks:
        _append(Job.objects.filter(pk__in=pks), now)
    return len(pks)


def exist() -> bool:
    """Whether the sweep has spans to append."""
    return bool(_TO_SETTLE.values())


def keep(job: Job, now: datetime) -> None:
    """Appends the spans of a job that is about to be deleted; its row is locked."""
    if Job.objects.filter(pk=job.pk, accounted=False).exists():
        _append(Job.objects.filter(pk=job.pk), now)


def between(begin: datetime, end: datetime, now: datetime, namespaces: Collection[str] | None) -> Iterator[Span]:
    """The spans that touch a time: of jobs that are not settled as of now, then those that were appended.

    A job that is settled between the queries is in both, and counts once.
    """
    rows, appended = _unsettled(begin, end), UsageSpan.objects.all()
    if namespaces is not None:
        rows, appended = rows.filter(namespace__in=namespaces), appended.filter(namespace__in=namespaces)
    yield from _both(rows, appended, begin, end, now)


def _unsettled(begin: datetime, end: datetime) -> QuerySet[Job]:
    touching = Q(finished_at=None) | Q(finished_at__gt=begin)
    return Job.objects.filter(touching, accounted=False, created_at__lt=end)


def _both(
    rows: QuerySet[Job], appended: QuerySet[UsageSpan], begin: datetime, end: datetime, now: datetime
) -> Iterator[Span]:
    seen: set[str] = set()
    pks = list(rows.order_by("pk").values_list("pk", flat=True))
    for start in range(0, len(pks), _CHUNK):
        for span in derive(Job.objects.filter(pk__in=pks[start : start + _CHUNK]), now):
            seen.add(span.job)
            yield span
    yield from (span for span in _read(appended.filter(end__gt=begin, begin__lt=end)) if span.job not in seen)


def of_attempts(begin: datetime, end: datetime, now: datetime) -> Iterator[Span]:
    """The same of all namespaces without what waiting jobs have, of which there may be many more: those are not read."""
    ran = Exists(Attempt.objects.filter(job=OuterRef("pk"), placed_at__lt=end))
    yield from _both(_unsettled(begin, end).filter(ran), UsageSpan.objects.filter(number__gt=0), begin, end, now)


def appended_before(jobs: Sequence[str], at: datetime) -> Iterator[Span]:
    """Of these jobs the spans that were appended and ended by then. One query for each 500 jobs."""
    for start in range(0, len(jobs), _CHUNK):
        yield from _read(UsageSpan.objects.filter(job_uid__in=jobs[start : start + _CHUNK], end__lte=at))


def _read(rows: QuerySet[UsageSpan]) -> Iterator[Span]:
    columns = ("job_uid", "number", "kind", "begin", "end", "gpus", "outcome")
    about = ("namespace", "user", "leaf", "cluster", "model", "price", "reason", "name")
    for uid, number, kind, since, until, *rest in rows.order_by().values_list(*columns, *about).iterator(5000):
        yield Span(str(uid), number, kind, _ms(since), _ms(until), *rest)


def derive(jobs: QuerySet[Job], now: datetime) -> Iterator[Span]:
    """The spans of these jobs, as of now. Five queries."""
    rows = list(jobs.order_by("pk").values(*_JOB))
    attempts: dict[int, list[Attempt]] = defaultdict(list)
    for attempt in Attempt.objects.filter(job__in=[row["pk"] for row in rows]).order_by("job_id", "number"):
        attempts[attempt.job_id].append(attempt)
    pods: dict[tuple[UUID, int], datetime] = {}
    created = Pod.objects.filter(job_uid__in=[row["uid"] for row in rows]).order_by("created_at")
    for uid, number, at in created.values_list("job_uid", "attempt", "created_at"):
        pods[uid, number] = at
    clusters = _clusters() if attempts else {}
    saves = _saves([row["pk"] for row in rows])
    for row in rows:
        for attempt in attempts[row["pk"]]:
            saved = _saved_until(row, attempt, saves.get((row["pk"], attempt.number)))
            yield from _of_attempt(row, attempt, pods.get((row["uid"], attempt.number)), saved, clusters, now)
        yield from _of_waiting(row, attempts[row["pk"]], now)


def _to_settle() -> QuerySet[Job]:
    """Jobs that have ended with all their attempts."""
    runs_on = Exists(Attempt.objects.filter(job=OuterRef("pk"), ended_at__isnull=True))
    ended = Job.objects.filter(accounted=False, finished_at__isnull=False, state__in=Job.FINISHED)
    return ended.filter(~runs_on, deleting_at__isnull=True)


_TO_SETTLE = prepared.Rows(lambda _: _to_settle().order_by("pk").values_list("pk")[:_BATCH])
_ANY_OLD = prepared.Rows(
    lambda param: UsageSpan.objects.filter(end__lt=param("before", TIME)).order_by("end").values_list("pk")[:1]
)


def _append(jobs: QuerySet[Job], now: datetime) -> None:
    """Writes the spans, and that they are written. The jobs are locked."""
    rows = [
        UsageSpan(
            job_uid=span.job, number=span.number, kind=span.kind, begin=_at(span.begin), end=_at(span.end), gpus=span.gpus,
            outcome=span.outcome, namespace=span.namespace, user=span.user, leaf=span.leaf, cluster=span.cluster,
            model=span.model, price=span.price, reason=span.reason, name=span.name,
        )
        for span in derive(jobs, now)
    ]  # fmt: skip
    UsageSpan.objects.bulk_create(rows, batch_size=_CHUNK, ignore_conflicts=True)
    jobs.update(accounted=True)


Clusters = Mapping[str, tuple[str, float | None]]
"""By name the model of its GPUs, empty where its nodes name none, and the price of a GPU-hour."""


def _of_attempt(
    job: Mapping[str, Any],
    attempt: Attempt,
    pods_at: datetime | None,
    saved: datetime | None,
    clusters: Clusters,
    now: datetime,
) -> Iterator[Span]:
    """``saved``: until when it had saved its work; None: that is not known, or nothing was lost."""
    ended = attempt.ended_at or max(now, attempt.placed_at)
    started = min(attempt.started_at or ended, ended)
    ready = min(max(pods_at or started, attempt.placed_at), started)
    model, price = clusters.get(attempt.cluster_name, ("", None))
    leaf = attempt.leaf or job["leaf"]
    about = (job["namespace"], job["submitted_by"], leaf, attempt.cluster_name, model, price, "", job["name"])
    sizes = [*(attempt.sizes or ()), (_ms(ended), job["gpus"] if attempt.gpus is None else attempt.gpus)]
    bounds = [(Owner.MEMBER.value, attempt.placed_at, ready), (Owner.IMAGE.value, ready, started)]
    if saved is None:
        bounds.append((Owner.RUNNING.value, started, ended))
    else:
        cut = min(max(saved, started), ended)
        bounds += [(SAVED, started, cut), (UNSAVED, cut, ended)]
    for kind, begin, end in bounds:
        since, last = _ms(begin), _ms(end)
        for until, gpus in sizes:
            to = min(until, last)
            if since < to:
                yield Span(str(job["uid"]), attempt.number, kind, since, to, gpus, attempt.outcome, *about)
                since = to


def _saves(jobs: Sequence[int]) -> dict[tuple[int, int], datetime]:
    """By job and attempt, when a pod that was notified last left with its work saved."""
    left = Coalesce("left_at", "stopped_at")
    rows = Notice.objects.filter(job__in=jobs, saved_step__isnull=False).annotate(left=left).filter(left__isnull=False)
    return {(job, number): at for job, number, at in rows.order_by("left").values_list("job", "attempt", "left")}


def _saved_until(job: Mapping[str, Any], attempt: Attempt, left_at: datetime | None) -> datetime | None:
    """Until when an attempt that was cut short had saved its work; None: not known, or it was not cut short.

    A job says the time of its last checkpoint alone: of an attempt that had ended by then nothing is known.
    """
    if attempt.ended_at is None or not accounting.cuts_short(attempt.outcome):
        return None
    if left_at is not None:
        return left_at
    loss = cost.eviction_loss(
        job["kind"], {}, job["manifest__metadata__annotations"] or {}, job["status__conditions"] or []
    )
    if loss.checkpointed and loss.saved_at is None:
        return attempt.ended_at
    return loss.saved_at if loss.saved_at is not None and loss.saved_at <= attempt.ended_at else None


def _of_waiting(job: Mapping[str, Any], attempts: Sequence[Attempt], now: datetime) -> Iterator[Span]:
    runs = [
        timeline.Run(a.number, a.cluster_name, a.placed_at, None, a.started_at, a.ended_at, a.outcome) for a in attempts
    ]
    turns = timeline.parse_turns(job["waited"])
    about = ("", job["namespace"], job["submitted_by"], job["leaf"], "", "", None)
    for each in timeline.slices_of(job["created_at"], job["finished_at"], turns, runs, now):
        if each.attempt or each.owner is Owner.RUNNING:
            continue
        for code, since, until in waited_codes.split(each, job["waited_codes"], runs):
            begin, end = _ms(since), _ms(until)
            if begin < end:
                yield Span(str(job["uid"]), 0, each.owner, begin, end, job["gpus"], *about, code, job["name"])


def _clusters() -> Clusters:
    models = models_of_clusters()
    labels = Cluster.objects.order_by().values_list("name", "labels")
    return {
        name: (
            model := models.get(name, ""),
            prices.parse_prices(of).price_of("" if model == SEVERAL else model) or None,
        )
        for name, of in labels
    }


def models_of_clusters() -> dict[str, str]:
    """By cluster, the model of its GPUs as its nodes name it now; empty: they name none."""
    labels = {f"model{i}": KT(f"labels__{label}") for i, label in enumerate(MODEL_LABELS)}
    kinds: Iterable[Any] = (
        Node.objects.order_by().annotate(**labels).values_list("cluster__name", *labels, "allocatable").distinct()
    )
    models: dict[str, str] = {}
    for cluster, *names, allocatable in kinds:
        if devices.count(allocatable):
            model = next((each for each in names if each), "")
            models[cluster] = model if models.get(cluster, model) == model else SEVERAL
    return models


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def _at(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
