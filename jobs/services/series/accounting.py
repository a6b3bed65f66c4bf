"""What teams, users, queues and models used, waited and lost over a time, from the spans of jobs that one reader may see."""

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime, timedelta
from enum import StrEnum

from fleet.errors import invalid
from jobs.core.explain.accounting import Span, Sums, add_up
from jobs.services.lifecycle.accounting import usage_spans

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


_NAMES: dict[Owner, Callable[[Span], str]] = {
    Owner.TEAM: lambda span: span.namespace,
    Owner.USER: lambda span: span.user,
    Owner.QUEUE: lambda span: span.leaf,
    Owner.CLUSTER: lambda span: span.cluster,
    Owner.MODEL: lambda span: span.model,
}


def read(
    by: Owner, begin: datetime, end: datetime, now: datetime, namespaces: Collection[str] | None
) -> list[tuple[str, Sums]]:
    """The largest first, months in their order. ``namespaces`` are those the reader may see, None: all."""
    if begin >= end:
        raise invalid("from", "must be before to")
    if end - begin > LONGEST:
        raise invalid("from", f"must be at most {LONGEST.days} days before to")
    until = min(end, now)
    spans = _bounded(usage_spans.between(begin, until, now, namespaces))
    sums = add_up(spans, _ms(begin), _ms(until), _NAMES.get(by))
    if by is Owner.MONTH:
        return sorted(sums.items())
    return sorted(sums.items(), key=lambda each: (-each[1].total, each[0]))


def _bounded(spans: Iterable[Span]) -> Iterator[Span]:
    for count, span in enumerate(spans):
        if count == MOST_SPANS:
            raise invalid("from", f"has more than {MOST_SPANS} spans until to: choose a later from")
        yield span


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)
