"""The device plugin of simulated nodes that allocate GPUs by their links: resources, link matrix, allocation to pods.

A node with the label offers ``aliyun.com/gpu`` instead of ``nvidia.com/gpu``. A pod gets the GPUs that its annotation names if
they are free, else any free ones. Annotations on the pod show its own GPUs and those of its gang.
"""

from fleet.kube.resources import CONFIG_MAPS, NODES, PODS
from fleet.member.client import Object
from fleet.member.errors import MemberExists, MemberMissing
from simulator.machinery.controller import Cluster, Controller
from simulator.machinery.objects import (
    annotations_of,
    is_finished,
    key_of,
    labels_of,
    name_of,
    node_of,
    split_key,
    uid_of,
)
from simulator.node.gpu_topology import SWITCH, config_map, is_switched_on
from simulator.scheduler.ranks import index_of

PLAIN, LINKED = "nvidia.com/gpu", "aliyun.com/gpu"
SETS = "convoy.dev/gpu-sets"
GROUP, VISIBLE = "topology.kubernetes.io/gpu-group", "topology.kubernetes.io/gpu-visible"


class Devices(Controller):
    """Keys are node names. A node is processed by one worker at a time, so that no GPU is allocated twice."""

    name = "devices"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._nodes = cluster.informer(NODES)
        self._pods = cluster.informer(PODS)
        self._nodes.listen(lambda _kind, node: self.queue.add(name_of(node)))
        self._pods.listen(self._on_pod)

    def reconcile(self, key: str) -> float | None:
        node = self._nodes.get(f"/{key}")
        if node is None:
            return None
        self._offer(node)
        if is_switched_on(node):
            self._allocate(key, int((node.get("status") or {}).get("capacity", {}).get(LINKED) or 0))
        return None

    def _on_pod(self, _kind: str, pod: Object) -> None:
        if requested(pod) and node_of(pod):
            self.queue.add(node_of(pod))

    def _offer(self, node: Object) -> None:
        wanted, other = (LINKED, PLAIN) if is_switched_on(node) else (PLAIN, LINKED)
        status = node.get("status") or {}
        if SWITCH not in labels_of(node) or other not in (status.get("capacity") or {}):
            return
        number = status["capacity"][other]
        change = {"status": {field: {other: None, wanted: number} for field in ("capacity", "allocatable")}}
        if wanted == LINKED:
            self._show_links(node, int(number))
        self._nodes.learn(self.client.merge_patch(NODES.path(name=name_of(node), subresource="status"), change))

    def _show_links(self, node: Object, gpus: int) -> None:
        body = config_map(node, gpus)
        try:
            self.client.create(CONFIG_MAPS.path("kube-system"), body)
        except MemberExists:
            path = CONFIG_MAPS.path("kube-system", body["metadata"]["name"])
            self.client.merge_patch(path, {"data": body["data"]})

    def _allocate(self, node: str, gpus: int) -> None:
        here = [pod for pod in self._pods.all() if node_of(pod) == node and requested(pod) and not is_finished(pod)]
        used = {gpu for pod in here for gpu in allocated(pod)}
        for pod in sorted(here, key=lambda pod: (key_of(pod).rpartition("-")[0], index_of(pod), uid_of(pod))):
            if allocated(pod):
                continue
            preferred = preferred_gpus(pod, node)
            free = [gpu for gpu in (*preferred, *range(gpus)) if gpu not in used]
            chosen = sorted(list(dict.fromkeys(free))[: requested(pod)])
            if len(chosen) < requested(pod):
                continue
            used.update(chosen)
            visible = preferred if set(chosen) <= set(preferred) else chosen
            annotations = {GROUP: ",".join(map(str, chosen)), VISIBLE: ",".join(map(str, visible))}
            try:
                body = {"metadata": {"uid": uid_of(pod), "annotations": annotations}}
                self._pods.learn(self.client.merge_patch(PODS.path(*split_key(key_of(pod))), body))
            except MemberMissing:
                used.difference_update(chosen)


def requested(pod: Object) -> int:
    """How many linked GPUs the pod requests."""
    total = 0
    for container in (pod.get("spec") or {}).get("containers") or []:
        total += int(((container.get("resources") or {}).get("limits") or {}).get(LINKED) or 0)
    return total


def allocated(pod: Object) -> list[int]:
    """The GPUs that the pod has, from its annotation."""
    return _indices(annotations_of(pod).get(GROUP, ""))


def preferred_gpus(pod: Object, node: str) -> list[int]:
    """The GPUs of this node in the pod's annotation: ``node-a=4,5 node-b=6``."""
    for word in annotations_of(pod).get(SETS, "").split():
        name, _, gpus = word.partition("=")
        if name == node:
            return _indices(gpus)
    return []


def _indices(text: str) -> list[int]:
    return [int(index) for index in text.split(",") if index.isdigit()]
