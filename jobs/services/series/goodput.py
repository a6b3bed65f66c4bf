"""Goodput of jobs over a time: what became of it, and what cost most of it by class of failure, node, job and others.

The spans are those of accounting; the failures are the diagnoses of attempts. Of a deleted job the spans remain, and its
failures are of class unknown.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.db.models import Q

from fleet.errors import NotFound
from jobs.core.explain import goodput
from jobs.core.explain.accounting import Span, cuts_short
from jobs.core.explain.goodput import Key, Namer, Pauses, Slice, Stop, Times
from jobs.core.failover.diagnosis import Class, class_of
from jobs.core.failover.rules import Outcome
from jobs.models import Attempt, Hang, Job, Pace
from jobs.services.lifecycle.accounting import usage_spans
from jobs.services.series import periods

LONGEST = timedelta(days=92)
MOST_SPANS = 300_000
"""Counted for one answer: they are in memory at once."""


class Owner(StrEnum):
    CLASS = "class"
    NODE = "node"
    JOB = "job"
    TEAM = "team"
    QUEUE = "queue"
    CLUSTER = "cluster"
    MODEL = "model"
    FLEET = "fleet"


_NAMES: Mapping[Owner, Namer] = {
    Owner.CLASS: lambda each: each.stop.category if each.stop else None,
    Owner.NODE: lambda each: each.stop.node or None if each.stop else None,
    Owner.JOB: lambda each: each.span.job,
    Owner.TEAM: lambda each: each.span.namespace,
    Owner.QUEUE: lambda each: each.span.leaf,
    Owner.CLUSTER: lambda each: each.span.cluster or None,
    Owner.MODEL: lambda each: each.span.model or None,
    Owner.FLEET: lambda _: "fleet",
}
_FAILURES: Mapping[Owner, Namer] = {
    Owner.CLASS: lambda each: each.ended_by.category if each.ended_by else None,
    Owner.NODE: lambda each: each.ended_by.node or None if each.ended_by else None,
}


def read(
    by: Owner, begin: datetime, end: datetime, now: datetime, namespaces: Collection[str] | None
) -> list[tuple[str, Times, float | None]]:
    """By name the times and the MTBF in milliseconds, what cost most GPU-time first.

    The MTBF is of the time that jobs ran: those of the name, for classes all. Of a node it is of the time that is asked for.
    ``namespaces`` are those the reader may see, None: all.
    """
    periods.check(begin, end, LONGEST)
    until = min(end, now)
    spans = list(periods.bounded(usage_spans.between(begin, until, now, namespaces), MOST_SPANS, "spans"))
    cut = list(goodput.slices(spans, _stops(spans), _pauses(spans, now)))
    bounds = periods.milliseconds(begin), periods.milliseconds(until)
    sums = goodput.add_up(cut, *bounds, _NAMES[by], _FAILURES.get(by, _NAMES[by]))
    if by is Owner.JOB:
        sums = _named(sums, {span.job: f"{span.namespace}/{span.name}" for span in spans if span.name})
    ran = sum(_overlap(each, *bounds) for each in cut if each.part in goodput.RUNNING)
    exposed = {Owner.CLASS: ran, Owner.NODE: bounds[1] - bounds[0]}.get(by)
    rows = [(name, times, _mtbf(times, exposed)) for name, times in sums.items()]
    return sorted(rows, key=lambda row: (-_cost(row[1]), row[0]))


def of_job(job: Job, now: datetime) -> tuple[list[tuple[Attempt, Times, Stop | None]], Times]:
    """The attempts of a job with what became of their time, and all of its time. Raises NotFound."""
    spans = list(usage_spans.derive(Job.objects.filter(pk=job.pk), now))
    attempts = list(Attempt.objects.filter(job=job).order_by("number"))
    if not attempts and not spans:
        raise NotFound(f"{job} has not been placed yet")
    stops = _stops(spans)
    cut = list(goodput.slices(spans, stops, _pauses(spans, now)))
    whole = (0, periods.milliseconds(now) + 1)
    by_attempt = goodput.add_up(cut, *whole, _number, _number)
    total = goodput.add_up(cut, *whole, lambda _: "", lambda _: "").get("", Times())
    rows = [
        (each, by_attempt.get(str(each.number), Times()), stops.get((str(job.uid), each.number))) for each in attempts
    ]
    return rows, total


def _number(each: Slice) -> str | None:
    return str(each.span.number) if each.span.number else None


def _overlap(each: Slice, begin: int, end: int) -> int:
    return max(min(each.end, end) - max(each.begin, begin), 0)


def _mtbf(times: Times, exposed: int | None) -> float | None:
    if exposed is None:
        return times.mtbf_ms
    return exposed / times.failures if times.failures else None


def _cost(times: Times) -> int:
    """GPU-time that was not productive, of what jobs had or waited for."""
    return sum(amount for part, amount in times.gpu_ms.items() if part is not goodput.Part.PRODUCTIVE)


def _stops(spans: Sequence[Span]) -> dict[Key, Stop]:
    """What cut these attempts short. One query for each thousand of their jobs."""
    short = {(span.job, span.number) for span in spans if span.number and cuts_short(span.outcome)}
    stops: dict[Key, Stop] = {}
    for uids in _some(sorted({uid for uid, _ in short})):
        rows = Attempt.objects.filter(~Q(outcome=""), job__uid__in=uids)
        columns = ("job__uid", "number", "cluster_name", "outcome", "cause", "evidence", "diagnosis")
        for uid, number, cluster, *said in rows.values_list(*columns):
            if (str(uid), number) in short:
                stops[str(uid), number] = _stop(cluster, *said)
    return stops


def _some(uids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (uids[start : start + 1000] for start in range(0, len(uids), 1000))


def _stop(cluster: str, outcome: str, cause: str, evidence: Any, diagnosis: Any) -> Stop:
    if outcome in (Outcome.RECLAIMED, Outcome.DRAINED):
        return Stop(Class.PREEMPTION)
    known: Mapping[str, Any] = diagnosis or {}
    if outcome in (Outcome.LOST, Outcome.VANISHED) and not known:
        return Stop(Class.INFRASTRUCTURE)
    category = str(known.get("category") or class_of(cause))
    node = str(known.get("node") or next((pod["node"] for pod in evidence or () if pod.get("node")), ""))
    return Stop(category, f"{cluster}/{node}" if node else "")


def _pauses(spans: Sequence[Span], now: datetime) -> dict[Key, Pauses]:
    """When these attempts hung, and what their checkpoints took. Two queries for each thousand of their jobs."""
    hung: dict[Key, list[tuple[int, int]]] = defaultdict(list)
    saving: dict[Key, int] = {}
    for uids in _some(sorted({span.job for span in spans if span.number})):
        rows = Hang.objects.filter(job__uid__in=uids).values_list("job__uid", "attempt", "since", "over_at")
        for uid, attempt, since, over_at in rows:
            span = periods.milliseconds(since), periods.milliseconds(over_at or now)
            hung[str(uid), attempt].append(span)
        paces = Pace.objects.filter(job__uid__in=uids, saving_s__gt=0).values_list("job__uid", "attempt", "saving_s")
        saving |= {(str(uid), attempt): round(seconds * 1000) for uid, attempt, seconds in paces}
    return {key: Pauses(tuple(hung.get(key, ())), saving.get(key, 0)) for key in {*hung, *saving}}


def _named(sums: Mapping[str, Times], names: dict[str, str]) -> dict[str, Times]:
    """Jobs by namespace and name, as their spans have it; deleted ones of which it was not kept by their uid."""
    for uids in _some(sorted(sums.keys() - names)):
        for uid, namespace, name in Job.objects.filter(uid__in=uids).values_list("uid", "namespace", "name"):
            names[str(uid)] = f"{namespace}/{name}"
    # Jobs of two kinds may have one name.
    taken: set[str] = set()
    named: dict[str, Times] = {}
    for key, times in sums.items():
        name = names.get(key, key)
        named[f"{name} ({key})" if name in taken else name] = times
        taken.add(name)
    return named
