"""The counters and histograms of this process, or of all processes that share a folder, as Prometheus collects them.

Web processes serve them at ``/metrics`` beside the gauges of the fleet. The others have a port of their own for Prometheus, off
unless ``CONVOY_METRICS_PORT`` is set.
"""

import os
from collections.abc import Iterable
from wsgiref.simple_server import WSGIServer

from prometheus_client import REGISTRY, CollectorRegistry, start_http_server
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from structlog import get_logger

log = get_logger(__name__)


def counted() -> Collector:
    """Everything counted under ``convoy_``: the sums over ``PROMETHEUS_MULTIPROC_DIR`` where it is set."""
    if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        return MultiProcessCollector(CollectorRegistry())  # type: ignore[no-untyped-call]  # prometheus_client leaves it untyped
    return _Own()


def serve() -> WSGIServer | None:
    """Starts a thread that answers ``GET /metrics`` on ``CONVOY_METRICS_PORT``; without one, does nothing.

    A port that is taken, as by another process with the same environment, is logged: the work of the process goes before.
    """
    port = os.environ.get("CONVOY_METRICS_PORT", "")
    if not port:
        return None
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"CONVOY_METRICS_PORT is {port!r}: set it to a port from 1 to 65535")
    registry = CollectorRegistry()
    registry.register(counted())
    host = os.environ.get("CONVOY_METRICS_HOST", "127.0.0.1")
    try:
        server, _ = start_http_server(int(port), addr=host, registry=registry)
    except OSError as e:
        remedy = (
            "set CONVOY_METRICS_PORT to a free port for each process, CONVOY_METRICS_HOST to an address of this machine"
        )
        log.error("metrics are not served", host=host, port=int(port), error=str(e), remedy=remedy)
        return None
    return server


class _Own(Collector):
    def collect(self) -> Iterable[Metric]:
        return (family for family in REGISTRY.collect() if family.name.startswith("convoy_"))
