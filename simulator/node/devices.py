"""The device plugin of a simulated node whose GPUs are handed out by their links: offers, link matrix, who has which.

A node labelled for it offers ``aliyun.com/gpu`` in place of ``nvidia.com/gpu``, and back. Of a pod on it, what its own
annotation names is followed while that is free; the pod gets its GPUs and those of its gang, in the terms of training facts.
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
    """Keys are node names: one node at a time, so no GPU is given twice."""

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
            self._hand_out(key, int((node.get("status") or {}).get("capacity", {}).get(LINKED) or 0))
        return None

    def _on_pod(self, _kind: str, pod: Object) -> None:
        if asked(pod) and node_of(pod):
            self.queue.add(node_of(pod))

    def _offer(self, node: Object) -> None:
        wanted, other = (LINKED, PLAIN) if is_switched_on(node) else (PLAIN, LINKED)
        status = node.get("status") or {}
        if SWITCH not in labels_of(node) or other not in (status.get("capacity") or {}):
            return
        number = status["capacity"][other]
        change = {"status": {each: {other: None, wanted: number} for each in ("capacity", "allocatable")}}
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

    def _hand_out(self, node: str, gpus: int) -> None:
        here = [pod for pod in self._pods.all() if node_of(pod) == node and asked(pod) and not is_finished(pod)]
        used = {gpu for pod in here for gpu in given(pod)}
        for pod in sorted(here, key=lambda pod: (key_of(pod).rpartition("-")[0], index_of(pod), uid_of(pod))):
            if given(pod):
                continue
            wish = wished_gpus(pod, node)
            free = [gpu for gpu in (*wish, *range(gpus)) if gpu not in used]
            mine = sorted(list(dict.fromkeys(free))[: asked(pod)])
            if len(mine) < asked(pod):
                continue
            used.update(mine)
            visible = wish if set(mine) <= set(wish) else mine
            notes = {GROUP: ",".join(map(str, mine)), VISIBLE: ",".join(map(str, visible))}
            try:
                body = {"metadata": {"uid": uid_of(pod), "annotations": notes}}
                self._pods.learn(self.client.merge_patch(PODS.path(*split_key(key_of(pod))), body))
            except MemberMissing:
                used.difference_update(mine)


def asked(pod: Object) -> int:
    found = 0
    for container in (pod.get("spec") or {}).get("containers") or []:
        found += int(((container.get("resources") or {}).get("limits") or {}).get(LINKED) or 0)
    return found


def given(pod: Object) -> list[int]:
    return [int(each) for each in annotations_of(pod).get(GROUP, "").split(",") if each.isdigit()]


def wished_gpus(pod: Object, node: str) -> list[int]:
    """``node-a=4,5 node-b=6``: those of this node."""
    for word in annotations_of(pod).get(SETS, "").split():
        name, _, gpus = word.partition("=")
        if name == node:
            return [int(each) for each in gpus.split(",") if each.isdigit()]
    return []
