"""Accounting for Prometheus: what each team used, waited and paid since midnight (UTC). Added up once a minute at most."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from prometheus_client.core import GaugeMetricFamily, Metric

from jobs.core.explain.accounting import Sums, add_up
from jobs.services.lifecycle.accounting import usage_spans

_HOUR_MS = 3_600_000
_HOLDS = timedelta(minutes=1)
_PARTS = ("starting", "useful", "preempted", "lost", "stopped")
_last: list[tuple[datetime, Mapping[str, Sums], Mapping[str, Sums]]] = []
"""When it was added up, then the sums by team and by queue."""


def families(now: datetime) -> Iterable[Metric]:
    """Gauges that begin anew at midnight. Part and cause are closed lists, and a team is a namespace."""
    hours = GaugeMetricFamily(
        "convoy_accounting_gpu_hours",
        "GPU-hours since midnight UTC, by team and by what became of them",
        labels=["team", "part"],
    )
    waited = GaugeMetricFamily(
        "convoy_accounting_waited_hours",
        "Hours that jobs waited since midnight UTC, by team and cause",
        labels=["team", "cause"],
    )
    cost = GaugeMetricFamily(
        "convoy_accounting_cost", "Cost since midnight UTC, by the prices in the labels of clusters", labels=["team"]
    )
    goodput = GaugeMetricFamily(
        "convoy_goodput_ratio",
        "The share of the GPU-time since midnight UTC that was useful, by queue; a queue without any is left out",
        labels=["queue"],
    )
    by_team, by_queue = _today(now)
    for queue, sums in sorted(by_queue.items()):
        if sums.goodput is not None:
            goodput.add_metric([queue], sums.goodput)
    for team, sums in sorted(by_team.items()):
        for part in _PARTS:
            hours.add_metric([team, part], getattr(sums, part) / _HOUR_MS)
        for cause, length in sorted(sums.waited.items()):
            waited.add_metric([team, cause], length / _HOUR_MS)
        cost.add_metric([team], sums.cost)
    return hours, waited, cost, goodput


def _today(now: datetime) -> tuple[Mapping[str, Sums], Mapping[str, Sums]]:
    if not _last or not timedelta() <= now - _last[-1][0] < _HOLDS:
        begin = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        spans = list(usage_spans.between(begin, now, now, None))
        since, until = (round(at.timestamp() * 1000) for at in (begin, now))
        by_team = add_up(spans, since, until, lambda span: span.namespace)
        by_queue = add_up(spans, since, until, lambda span: span.leaf)
        _last[:] = [(now, by_team, by_queue)]
    return _last[-1][1:]
