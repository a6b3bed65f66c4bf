"""Who is on which GPU: the nodes of a cluster with the pods of the fleet's jobs on them; and the fleet's GPUs by their model.

Reads what the members showed. Pods of others are a number only: what a node is asked for beyond the fleet's own pods.
"""

from collections import Counter, defaultdict
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from uuid import UUID

from django.db.models import QuerySet

from fleet.core import devices
from fleet.core.prices import MODEL_LABELS
from fleet.models import Cluster, Hold, Node, Pod
from jobs import snapshot
from jobs.models import Job

DOMAIN_LABELS = ("topology.kubernetes.io/rack", "network.topology.nvidia.com/leaf", "topology.kubernetes.io/zone")
NODES = 2000
"""Shown of one cluster."""


@dataclass(frozen=True, slots=True)
class PodOnNode:
    """``job`` is None when its namespace is not the reader's to see."""

    job: Job | None
    role: str
    index: int
    gpus: int


@dataclass(frozen=True, slots=True)
class HoldOnNode:
    """GPUs of a node that are held for a job whose pods are not there yet. ``job`` as of a pod."""

    job: Job | None
    gpus: int


@dataclass(slots=True)
class NodeGpus:
    name: str
    model: str
    domain: str
    ready: bool
    unschedulable: bool
    gpus: int
    requested: int
    pods: list[PodOnNode] = field(default_factory=list)
    holds: list[HoldOnNode] = field(default_factory=list)


@dataclass(slots=True)
class GpuModel:
    cluster: str
    model: str
    nodes: int = 0
    allocatable: int = 0
    requested: int = 0


def of_cluster(cluster: Cluster, namespaces: Container[str] | None) -> list[NodeGpus]:
    """Nodes with GPUs by domain and name; ``namespaces`` are those whose jobs may be named, None: all."""
    rows = [node for node in Node.objects.filter(cluster=cluster).order_by("name") if devices.count(node.allocatable)]
    nodes = {node.name: _node(node) for node in rows[:NODES]}
    pods = Pod.objects.filter(cluster=cluster, phase__in=snapshot.LIVE).exclude(node="")
    holds = Hold.objects.filter(cluster=cluster, released_at__isnull=True)
    jobs = _jobs(pods, holds)
    shown = {uid: job for uid, job in jobs.items() if namespaces is None or job.namespace in namespaces}
    placed: Counter[tuple[UUID, str]] = Counter()
    for uid, role, index, node in pods.order_by("job_uid", "role", "index").values_list(
        "job_uid", "role", "index", "node"
    ):
        job = jobs.get(uid)
        if job is None or node not in nodes:
            continue
        gpus = next((devices.count(each["request"]) for each in job.roles if each["name"] == role), 0)
        if gpus:
            placed[uid, node] += gpus
            nodes[node].pods.append(PodOnNode(shown.get(uid), role, index, gpus))
    for uid, on_nodes in holds.order_by("job_uid", "attempt").values_list("job_uid", "nodes"):
        for node, gpus in _held(on_nodes):
            coming = gpus - placed[uid, node]
            if coming > 0 and node in nodes:
                nodes[node].holds.append(HoldOnNode(shown.get(uid), coming))
    return sorted(nodes.values(), key=lambda node: (node.domain, node.name))


def _held(on_nodes: list[tuple[dict[str, int], list[str]]]) -> Iterator[tuple[str, int]]:
    """Node by node, the GPUs that a hold keeps there, those of pods that have come included."""
    for amounts, names in on_nodes:
        if gpus := devices.count(amounts):
            yield from ((name, gpus) for name in names)


def models() -> list[GpuModel]:
    """Of all clusters, by the rule that counts capacity: nodes that are ready and schedulable."""
    models_by_name: dict[tuple[str, str], GpuModel] = defaultdict(lambda: GpuModel("", ""))
    rows = Node.objects.filter(ready=True, unschedulable=False).order_by()
    for cluster, labels, allocatable, requested in rows.values_list(
        "cluster__name", "labels", "allocatable", "requested"
    ):
        if gpus := devices.count(allocatable):
            model = _label(labels, MODEL_LABELS)
            each = models_by_name[cluster, model]
            each.cluster, each.model = cluster, model
            each.nodes += 1
            each.allocatable += gpus
            each.requested += devices.count(requested, allocatable)
    return sorted(models_by_name.values(), key=lambda each: (-each.allocatable, each.model, each.cluster))


def _node(row: Node) -> NodeGpus:
    return NodeGpus(
        name=row.name,
        model=_label(row.labels, MODEL_LABELS),
        domain=_label(row.labels, DOMAIN_LABELS),
        ready=row.ready,
        unschedulable=row.unschedulable,
        gpus=devices.count(row.allocatable),
        requested=devices.count(row.requested, row.allocatable),
    )


def _jobs(pods: QuerySet[Pod], holds: QuerySet[Hold]) -> dict[UUID, Job]:
    there = pods.order_by().values("job_uid").union(holds.order_by().values("job_uid"))
    rows = Job.objects.filter(uid__in=there).only("uid", "kind", "namespace", "name", "state", "leaf", "roles")
    return {job.uid: job for job in rows}


def _label(labels: dict[str, str], names: tuple[str, ...]) -> str:
    return next((labels[name] for name in names if labels.get(name)), "")
