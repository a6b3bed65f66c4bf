"""Chooses the GPUs of each node for a gang, on nodes whose device plugin allocates GPUs by their links.

The choice is made before the job is sent. First the member is read, outside any transaction: the link matrix of each node and
the GPUs in use. Then, under a lock of the cluster's row, sets are chosen from the GPUs that are neither in use nor chosen for
other jobs, and written to the binding. When the same attempt is sent again, it uses the stored sets. If the member reports no
links, no set is chosen and the device plugin allocates any free GPUs.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from django.db import transaction

from fleet.core.members import marks
from fleet.kube.resources import CONFIG_MAPS, PODS
from fleet.member.client import MemberClient
from fleet.member.errors import MemberMissing, MemberRefused
from fleet.models import Cluster, Node
from jobs.core.topology import gpu_links
from jobs.core.topology.gpu_links import RESOURCE, Devices
from jobs.models import Binding, Job

NAMESPACE = "kube-system"
_FEW = 16
"""Up to this many nodes, pods are listed node by node; above, for the whole cluster."""
UsedGpus = dict[str, set[int]]
"""Indices of the GPUs in use, by node."""


def decide_gpu_sets(client: MemberClient, job: Job, attempt: int, cluster: Cluster) -> dict[str, list[int]]:
    """The GPU sets of this attempt by node, chosen now unless they are stored. Empty for a gang that requests no GPUs."""
    requested = {role["name"]: role["request"].get(RESOURCE, 0) for role in job.roles}
    if not any(requested.values()):
        return {}
    binding = Binding.objects.filter(job=job, attempt=attempt).first()
    if binding is None or not binding.placement:
        return {}
    if (decided := binding.placement.get("gpus")) is not None:
        return dict(decided)
    wanted = gpu_links.wanted(binding.placement["nodes"], requested)
    known = devices(client)
    used = _used_by_pods(client, wanted, str(job.uid))
    return _decide(binding, cluster, {node: n for node, n in wanted.items() if node in known}, known, used)


def devices(client: MemberClient) -> dict[str, Devices]:
    """The GPUs and links of every node of the member whose device plugin allocates GPUs by their links."""
    params = {"labelSelector": f"{gpu_links.SWITCH}={gpu_links.ON}"}
    try:
        items = client.list(CONFIG_MAPS.path(NAMESPACE), params)["items"]
    except (MemberRefused, MemberMissing):
        return {}
    parsed = map(gpu_links.parse_gpu_links, items)
    return {node_devices.node: node_devices for node_devices in parsed if node_devices is not None}


def pods_on(client: MemberClient, node: str) -> list[Mapping[str, Any]]:
    return list(client.list(PODS.path(), {"fieldSelector": f"spec.nodeName={node}"})["items"])


@transaction.atomic
def _decide(
    binding: Binding, cluster: Cluster, wanted: Mapping[str, int], known: Mapping[str, Devices], used: UsedGpus
) -> dict[str, list[int]]:
    """Chooses and stores the sets. The lock on the cluster's row keeps two jobs from getting the same GPUs."""
    Cluster.objects.select_for_update(no_key=True).only("pk").get(pk=cluster.pk)
    fresh = Binding.objects.get(pk=binding.pk)
    if fresh.attempt != binding.attempt or "gpus" in fresh.placement:
        return dict(fresh.placement.get("gpus") or {}) if fresh.attempt == binding.attempt else {}
    for node, gpus in _chosen_for_others(cluster, binding.pk):
        used[node].update(gpus)
    models = dict(Node.objects.filter(cluster=cluster, name__in=wanted).values_list("name", "labels"))
    chosen, rings = {}, []
    for node, count in sorted(wanted.items()):
        board = known[node].board(str(models.get(node, {}).get("nvidia.com/gpu.product", "")))
        best = board.best(known[node].healthy - used[node], count)
        if best is not None:
            chosen[node] = list(best)
            rings.append(board.ring(best))
    fresh.placement = {**fresh.placement, "gpus": chosen, "ring_gbs": min(rings, default=0.0)}
    fresh.save(update_fields=["placement"])
    return chosen


def _chosen_for_others(cluster: Cluster, excluded: int) -> Iterable[tuple[str, list[int]]]:
    """Node and GPUs of every other binding whose job is on this cluster, even if its pods do not exist yet."""
    others = Binding.objects.filter(cluster=cluster, job__state__in=Job.ON_MEMBER, job__cluster=cluster)
    others = others.exclude(pk=excluded).filter(placement__has_key="gpus")
    for placement in others.values_list("placement", flat=True):
        yield from placement["gpus"].items()


def _used_by_pods(client: MemberClient, nodes: Iterable[str], job_uid: str) -> UsedGpus:
    """GPUs allocated to pods of other jobs. Pods of the same job are ignored: they belong to an older copy that is ending."""
    used: UsedGpus = defaultdict(set)
    for pod in _pods(client, set(nodes)):
        labels = pod["metadata"].get("labels") or {}
        if labels.get(marks.JOB_UID) != job_uid:
            used[pod["spec"].get("nodeName", "")].update(gpu_links.given(pod))
    return used


def _pods(client: MemberClient, nodes: Collection[str]) -> Iterator[Mapping[str, Any]]:
    """The pods on these nodes; if there are more than `_FEW` nodes, all pods of the cluster."""
    if len(nodes) > _FEW:
        for page in client.pages(PODS.path()):
            yield from page["items"]
        return
    for node in sorted(nodes):
        yield from pods_on(client, node)
