"""The counters and histograms of this process, or of all processes that share a folder, as Prometheus collects them."""

import os
from collections.abc import Iterable

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector


def counted() -> Collector:
    """Everything counted under ``convoy_``: the sums over ``PROMETHEUS_MULTIPROC_DIR`` where it is set."""
    if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        return MultiProcessCollector(CollectorRegistry())  # type: ignore[no-untyped-call]  # prometheus_client leaves it untyped
    return _Own()


class _Own(Collector):
    def collect(self) -> Iterable[Metric]:
        return (family for family in REGISTRY.collect() if family.name.startswith("convoy_"))
