"""What teams, users, queues and models used, waited and lost over a time, from the spans of jobs that one reader may see."""

from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from enum import StrEnum

from jobs.core.explain.accounting import UNKNOWN, Span, Sums, add_up
from jobs.services.lifecycle.accounting import usage_spans
from jobs.services.series import periods

LONGEST = timedelta(days=366)
MOST_SPANS = 1_000_000
"""Counted for one answer."""


class Owner(StrEnum):
    TEAM = "team"
    USER = "user"
    QUEUE = "queue"
    CLUSTER = "cluster"
    MODEL = "model"
    MONTH = "month"
    REASON = "reason"


_NAMES: dict[Owner, Callable[[Span], str]] = {
    Owner.TEAM: lambda span: span.namespace,
    Owner.USER: lambda span: span.user,
    Owner.QUEUE: lambda span: span.leaf,
    Owner.CLUSTER: lambda span: span.cluster,
    Owner.MODEL: lambda span: span.model,
    Owner.REASON: lambda span: span.reason or UNKNOWN,
}


def read(
    by: Owner, begin: datetime, end: datetime, now: datetime, namespaces: Collection[str] | None
) -> list[tuple[str, Sums]]:
    """The largest first, months in their order. ``namespaces`` are those the reader may see, None: all."""
    periods.check(begin, end, LONGEST)
    until = min(end, now)
    spans = periods.bounded(usage_spans.between(begin, until, now, namespaces), MOST_SPANS, "spans")
    if by is Owner.REASON:
        spans = (span for span in spans if span.number == 0)
    sums = add_up(spans, periods.milliseconds(begin), periods.milliseconds(until), _NAMES.get(by))
    if by is Owner.MONTH:
        return sorted(sums.items())
    return sorted(sums.items(), key=lambda each: (-each[1].total, -sum(each[1].waited.values()), each[0]))
