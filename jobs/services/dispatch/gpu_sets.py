"""Which GPUs of a node a gang gets, where the node hands them out by their links: decided before the job is sent, and kept.

The member is asked first, outside any transaction: the link matrix, and which GPUs are taken. Then the sets are chosen beside
all that is promised to others, under a lock of that cluster, and written to the binding. Sent again, the same attempt finds its
sets there. A member that does not answer costs nothing but the choice: its device plugin gives what is free.
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
"""Nodes that are asked about one by one."""
Taken = dict[str, set[int]]
"""Node -> GPUs that are taken."""


def decide_gpu_sets(client: MemberClient, job: Job, attempt: int, cluster: Cluster) -> dict[str, list[int]]:
    """The sets of this attempt by node, decided now if they were not; nothing for a gang that asks none."""
    asked = {role["name"]: role["request"].get(RESOURCE, 0) for role in job.roles}
    if not any(asked.values()):
        return {}
    binding = Binding.objects.filter(job=job, attempt=attempt).first()
    if binding is None or not binding.placement:
        return {}
    if (decided := binding.placement.get("gpus")) is not None:
        return dict(decided)
    wanted = gpu_links.wanted(binding.placement["nodes"], asked)
    known = devices(client)
    taken = _given(client, wanted, str(job.uid))
    return _decide(binding, cluster, {node: n for node, n in wanted.items() if node in known}, known, taken)


def devices(client: MemberClient) -> dict[str, Devices]:
    """Of every node of a member that hands out GPUs by their links."""
    params = {"labelSelector": f"{gpu_links.SWITCH}={gpu_links.ON}"}
    try:
        items = client.list(CONFIG_MAPS.path(NAMESPACE), params)["items"]
    except (MemberRefused, MemberMissing):
        return {}
    return {found.node: found for item in items if (found := gpu_links.parse_gpu_links(item)) is not None}


def pods_on(client: MemberClient, node: str) -> list[Mapping[str, Any]]:
    return list(client.list(PODS.path(), {"fieldSelector": f"spec.nodeName={node}"})["items"])


@transaction.atomic
def _decide(
    binding: Binding, cluster: Cluster, wanted: Mapping[str, int], known: Mapping[str, Devices], taken: Taken
) -> dict[str, list[int]]:
    """The lock on the cluster's row is what keeps two from taking the same."""
    Cluster.objects.select_for_update(no_key=True).only("pk").get(pk=cluster.pk)
    fresh = Binding.objects.get(pk=binding.pk)
    if fresh.attempt != binding.attempt or "gpus" in fresh.placement:
        return dict(fresh.placement.get("gpus") or {}) if fresh.attempt == binding.attempt else {}
    for node, gpus in _promised(cluster, binding.pk):
        taken[node].update(gpus)
    models = dict(Node.objects.filter(cluster=cluster, name__in=wanted).values_list("name", "labels"))
    chosen, rings = {}, []
    for node, count in sorted(wanted.items()):
        board = known[node].board(str(models.get(node, {}).get("nvidia.com/gpu.product", "")))
        best = board.best(known[node].healthy - taken[node], count)
        if best is not None:
            chosen[node] = list(best)
            rings.append(board.ring(best))
    fresh.placement = {**fresh.placement, "gpus": chosen, "ring_gbs": min(rings, default=0.0)}
    fresh.save(update_fields=["placement"])
    return chosen


def _promised(cluster: Cluster, but: int) -> Iterable[tuple[str, list[int]]]:
    """To the other jobs that are on this cluster now, whether or not their pods are there yet."""
    others = Binding.objects.filter(cluster=cluster, job__state__in=Job.ON_MEMBER, job__cluster=cluster).exclude(pk=but)
    for found in others.filter(placement__has_key="gpus").values_list("placement", flat=True):
        yield from found["gpus"].items()


def _given(client: MemberClient, nodes: Iterable[str], mine: str) -> Taken:
    """To pods of others; those of an older copy of the same job are on their way out."""
    taken: Taken = defaultdict(set)
    for pod in _pods(client, set(nodes)):
        labels = pod["metadata"].get("labels") or {}
        if labels.get(marks.JOB_UID) != mine:
            taken[pod["spec"].get("nodeName", "")].update(gpu_links.given(pod))
    return taken


def _pods(client: MemberClient, nodes: Collection[str]) -> Iterator[Mapping[str, Any]]:
    """Node by node while they are few, else all of the cluster."""
    if len(nodes) > _FEW:
        for page in client.pages(PODS.path()):
            yield from page["items"]
        return
    for node in sorted(nodes):
        yield from pods_on(client, node)
