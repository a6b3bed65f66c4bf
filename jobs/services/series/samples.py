"""What is only known as of now: capacity, what nodes are asked for, what quotas lend, how many jobs wait.

In a fixed number of queries, each counted by the database: a fleet of 10,000 nodes is a few kinds of nodes.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime

from django.db.models import Count, Sum
from django.db.models.fields.json import KT

from fleet.core import devices
from fleet.core.prices import MODEL_LABELS
from fleet.models import Cluster, Hold, Node, NodeReading
from fleet.services.gpus import storing
from jobs import snapshot
from jobs.core.series.catalogue import Dimension, Key, Metric
from quotas import queries
from quotas.services import usage

Samples = dict[Key, float | None]


def take(now: datetime) -> Samples:
    return {**_supply(), **_utilization(now), **_quota(), **_waiting()}


def _utilization(now: datetime) -> Samples:
    """Means in percent, of GPUs with a recent reading; nothing of a cluster without any."""
    rows = NodeReading.objects.filter(at__gte=now - storing.freshness(), measured__gt=0).order_by()
    sums = rows.values_list("cluster__name").annotate(Sum("utilization"), Sum("measured"))
    samples: Samples = {}
    total, count = 0.0, 0
    for cluster, utilization, measured in sums:
        samples[Key(Metric.UTILIZATION, Dimension.CLUSTER, cluster)] = round(utilization / measured, 1)
        total, count = total + utilization, count + measured
    if count:
        samples[Key(Metric.UTILIZATION, Dimension.FLEET)] = round(total / count, 1)
    return samples


def _supply() -> Samples:
    """Of nodes that are ready and schedulable. Those of clusters that do not answer count apart: no job can use them."""
    labels = {f"model{i}": KT(f"labels__{label}") for i, label in enumerate(MODEL_LABELS)}
    fields = ("cluster__name", "cluster__state", "ready", "unschedulable", *labels, "allocatable", "requested")
    kinds = Node.objects.order_by().annotate(**labels).values_list(*fields).annotate(Count("pk"))
    samples: dict[Key, float] = defaultdict(float)
    for cluster, state, ready, unschedulable, *models, allocatable, requested, count in kinds:
        model = next((each for each in models if each), "")
        is_counted, is_reachable = ready and not unschedulable, state == Cluster.State.READY
        capacity, used = devices.count(allocatable) * count, devices.count(requested, allocatable) * count
        if capacity:
            # Nothing is added where nothing can be used: it is known to be 0.
            away = capacity if is_counted and not is_reachable else 0
            samples[Key(Metric.UNREACHABLE, Dimension.FLEET)] += away
            samples[Key(Metric.UNREACHABLE, Dimension.CLUSTER, cluster)] += away
            amounts = (capacity, used) if is_counted and is_reachable else (0, 0)
            _add_usable(samples, cluster, model, *amounts)
    _subtract_held(samples)
    return dict(samples)


def _add_usable(samples: dict[Key, float], cluster: str, model: str, capacity: int, used: int) -> None:
    for dimension, name in ((Dimension.FLEET, ""), (Dimension.CLUSTER, cluster), (Dimension.MODEL, model)):
        samples[Key(Metric.CAPACITY, dimension, name)] += capacity
        samples[Key(Metric.FREE, dimension, name)] += max(0, capacity - used)
        asked_for = Metric.USED if dimension is Dimension.MODEL else Metric.REQUESTED
        samples[Key(asked_for, dimension, name)] += used


def _subtract_held(samples: dict[Key, float]) -> None:
    rows = Hold.objects.filter(released_at=None, cluster__state=Cluster.State.READY)
    held: dict[str, int] = defaultdict(int)
    for cluster, amounts in rows.values_list("cluster__name", "amounts"):
        held[cluster] += devices.count(amounts)
    for cluster, amount in held.items():
        key = Key(Metric.FREE, Dimension.CLUSTER, cluster)
        if key in samples:
            taken = min(samples[key], amount)
            samples[key] -= taken
            samples[Key(Metric.FREE, Dimension.FLEET)] -= taken


def _quota() -> Samples:
    tree = queries.tree()
    if tree is None:
        return {}
    samples: Samples = {}
    for path, amounts in usage.report_admitted(queries.tree_now(tree)).items():
        gpus = [amount for resource, amount in amounts.items() if devices.is_device(resource)]
        limits = [amount.max for amount in gpus if amount.max is not None]
        values: Mapping[Metric, float | None] = {
            Metric.CHARGED: sum(amount.used for amount in gpus),
            Metric.BORROWED: sum(amount.borrowed for amount in gpus),
            Metric.LENT: sum(amount.lent for amount in gpus),
            Metric.MIN: sum(amount.min for amount in gpus),
            Metric.MAX: sum(limits) if len(limits) == len(gpus) and gpus else None,
        }
        samples |= {Key(metric, Dimension.QUEUE, path): value for metric, value in values.items()}
    return samples


def _waiting() -> Samples:
    rows = snapshot.waiting_jobs().order_by().values_list("leaf", "namespace").annotate(Count("pk"))
    samples: dict[Key, float | None] = {Key(Metric.WAITING, Dimension.FLEET): 0.0}
    for leaf, namespace, count in rows:
        for dimension, name in ((Dimension.FLEET, ""), (Dimension.TEAM, namespace), *_queues(leaf)):
            key = Key(Metric.WAITING, dimension, name)
            samples[key] = (samples.get(key) or 0.0) + count
    return samples


def _queues(path: str) -> Iterable[tuple[Dimension, str]]:
    while path:
        yield Dimension.QUEUE, path
        path = path.rpartition("/")[0]
