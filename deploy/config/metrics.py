"""Metrics of processes without a web page: a port of their own for Prometheus, off unless ``CONVOY_METRICS_PORT`` is set.

Processes that share ``PROMETHEUS_MULTIPROC_DIR`` keep their counters in files there, and each of them serves the sums.
"""

import os

from prometheus_client import CollectorRegistry, start_http_server

from fleet.api.http.exposition import counted


def serve() -> None:
    """Starts a thread that answers ``GET /metrics`` on ``CONVOY_METRICS_PORT``; without one, does nothing."""
    port = os.environ.get("CONVOY_METRICS_PORT", "")
    if not port:
        return
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"CONVOY_METRICS_PORT is {port!r}: set it to a port from 1 to 65535")
    registry = CollectorRegistry()
    registry.register(counted())
    start_http_server(int(port), addr=os.environ.get("CONVOY_METRICS_HOST", "127.0.0.1"), registry=registry)
