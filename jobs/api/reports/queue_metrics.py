"""Queues for Prometheus, read from the database at each scrape: what waits, and how much of the quota is in use.

Every web process serves the same figures: aggregate them with ``max``, never with ``sum``.
"""

from collections.abc import Iterator

from django.db.models import Count
from prometheus_client.core import GaugeMetricFamily, Metric

from jobs import snapshot
from jobs.core.admission.inadmissible import INADMISSIBLE
from quotas import queries
from quotas.core.trees import amounts
from quotas.services import usage


def pending() -> Metric:
    """Jobs that wait: ``active`` may be admitted when there is room, ``inadmissible`` needs a person to change something."""
    family = GaugeMetricFamily("convoy_pending_workloads", "Jobs that wait to be placed", labels=["queue", "status"])
    rows = snapshot.waiting_jobs().order_by().values_list("leaf", "reason_code").annotate(count=Count("pk"))
    counts: dict[tuple[str, str], int] = {}
    for leaf, code, count in rows:
        key = (leaf, "inadmissible" if code in INADMISSIBLE else "active")
        counts[key] = counts.get(key, 0) + count
    for key, count in sorted(counts.items()):
        family.add_metric(key, count)
    return family


def resources() -> Iterator[Metric]:
    """Use, min, max and borrowing of every quota node, in cores, bytes and devices."""
    labels = ["queue", "resource"]
    families = {
        "used": GaugeMetricFamily("convoy_queue_resource_usage", "Charged to running and placed jobs", labels=labels),
        "min": GaugeMetricFamily("convoy_queue_nominal_quota", "Guaranteed: min of the quota node", labels=labels),
        "max": GaugeMetricFamily(
            "convoy_queue_max_quota", "Ceiling: max of the quota node, where stated", labels=labels
        ),
        "borrowed": GaugeMetricFamily("convoy_queue_borrowed", "Used above min", labels=labels),
        "requested": GaugeMetricFamily("convoy_queue_requested", "Used, and what waiting jobs ask for", labels=labels),
    }
    tree = queries.tree()
    for path, by_resource in (usage.report(queries.tree_now(tree)) if tree else {}).items():
        for resource, amount in by_resource.items():
            for field, family in families.items():
                value = getattr(amount, field)
                if value is not None and value < amounts.UNLIMITED:
                    family.add_metric([path, resource], value / (1000 if resource == "cpu" else 1))
    yield from families.values()
