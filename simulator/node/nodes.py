"""Creates a member's nodes from its shape, and handles unreachable nodes as Kubernetes does.

The annotation ``convoy.dev/power: "off"`` switches a node off: its Ready condition becomes Unknown, it is tainted unreachable,
and after the toleration time its pods are deleted (and stay Terminating until the node is back, as in Kubernetes). The taint
``convoy.dev/reclaim=SECONDS`` says when a node is taken back (seconds since the epoch): it is deleted then, with what runs on
it. All controllers read this from the API server, so that it survives a restart of the simulator.
"""

import contextlib
from dataclasses import dataclass, field

from fleet.kube.resources import DEVICE_CLASSES, NODES, PODS, RESOURCE_SLICES, Resource
from fleet.member.client import MemberClient, Object
from fleet.member.errors import MemberExists
from simulator.machinery.clock import parse_stamp, stamp
from simulator.machinery.controller import Cluster, Controller
from simulator.machinery.objects import (
    annotations_of,
    condition,
    is_finished,
    is_leaving,
    key_of,
    name_of,
    node_of,
    split_key,
    uid_of,
)
from simulator.scheduler.fit import first_untolerated, tolerates

POWER = "convoy.dev/power"
RECLAIM = "convoy.dev/reclaim"
CAPACITY = "convoy.dev/capacity"
"""A label: ``spot`` for nodes that a market may take back."""
UNREACHABLE = "node.kubernetes.io/unreachable"
NOT_READY = "node.kubernetes.io/not-ready"
"""The taint of every new node on a real API server, until the node is ready."""
TOLERATED_S = 300.0


@dataclass(frozen=True, slots=True)
class Spot:
    """How a market takes the nodes of a pool back and gives them again (`simulator.spot_market`). Simulated seconds."""

    mean_up_s: float
    mean_down_s: float
    notice_s: float
    bursts_per_day: float = 0.0
    share: float = 0.5
    """Of the pool, that a burst takes."""
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Pool:
    """A number of equal nodes, and the capacity of each."""

    name: str
    count: int
    cpu: str = "64"
    memory: str = "512Gi"
    gpus: int = 0
    gpu_resource: str = "nvidia.com/gpu"
    gpu_model: str = ""
    gpu_class: str = ""
    """Its GPUs are had by claims of this DeviceClass (resource.k8s.io), and not by a resource. Empty: they are not."""
    pods: int = 110
    labels: dict[str, str] = field(default_factory=dict)
    taints: tuple[Object, ...] = ()
    spot: Spot | None = None
    """None: its nodes stay."""


def is_off(node: Object) -> bool:
    return annotations_of(node).get(POWER) == "off"


def reclaimed_in_s(node: Object, now: float) -> float | None:
    """In how many (real) seconds the node is taken back. None: it is not."""
    taints = (node.get("spec") or {}).get("taints") or []
    value = next((str(taint.get("value")) for taint in taints if taint.get("key") == RECLAIM), "")
    return float(value) - now if value.isascii() and value.isdigit() else None


def node_names(member: str, pool: Pool) -> list[str]:
    return [f"{member}-{pool.name}-{i}" for i in range(pool.count)]


def node_of_pool(member: str, pool: Pool, index: int, *, labels: dict[str, str], version: str, now: float) -> Object:
    name = node_names(member, pool)[index]
    offers = {"cpu": pool.cpu, "memory": pool.memory, "pods": str(pool.pods), "ephemeral-storage": "1Ti"}
    if pool.gpus and not pool.gpu_class:
        offers[pool.gpu_resource] = str(pool.gpus)
    own = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "convoy.dev/pool": pool.name,
        **({CAPACITY: "spot"} if pool.spot else {}),
    }
    model = {"nvidia.com/gpu.product": pool.gpu_model} if pool.gpu_model else {}
    info = {"kubeletVersion": version, "osImage": "Convoy simulated node", "architecture": "amd64"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**own, **model, **labels, **pool.labels}},
        "spec": {"taints": [dict(taint) for taint in pool.taints]},
        "status": {
            "capacity": offers,
            "allocatable": offers,
            "addresses": [{"type": "InternalIP", "address": address(name)}, {"type": "Hostname", "address": name}],
            "conditions": [ready_condition("True", now)],
            "nodeInfo": info,
        },
    }


def address(node: str) -> str:
    """A stable made-up host address."""
    number = sum((i + 1) * ord(letter) for i, letter in enumerate(node))
    return f"192.168.{number // 250 % 250}.{number % 250 + 1}"


def ready_condition(status: str, now: float) -> Object:
    reason, message = {
        "True": ("KubeletReady", "kubelet is posting ready status"),
        "Unknown": ("NodeStatusUnknown", "Kubelet stopped posting node status."),
    }[status]
    at = stamp(now)
    return {
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": at,
        "lastTransitionTime": at,
    }


def make_nodes(
    client: MemberClient, member: str, pools: list[Pool], *, labels: dict[str, str], version: str, now: float
) -> None:
    """Creates the nodes that are not there yet; those there keep their state."""
    for pool in pools:
        for index in range(pool.count):
            node = node_of_pool(member, pool, index, labels=labels, version=version, now=now)
            try:
                client.create(NODES.path(), node)
            except MemberExists:
                continue
            client.merge_patch(NODES.path(name=name_of(node), subresource="status"), {"status": node["status"]})
    for pool in (each for each in pools if each.gpu_class):
        make_devices(client, member, pool)


def make_devices(client: MemberClient, member: str, pool: Pool) -> None:
    """What a driver writes: the class of the GPUs, and the slices of the nodes."""
    driver = pool.gpu_class
    selector = {"cel": {"expression": f"device.driver == '{driver}' && device.attributes['{driver}'].type == 'gpu'"}}
    objects: list[tuple[Resource, Object]] = [
        (DEVICE_CLASSES, {"metadata": {"name": driver}, "spec": {"selectors": [selector]}})
    ]
    attributes = {"type": {"string": "gpu"}, **({"productName": {"string": pool.gpu_model}} if pool.gpu_model else {})}
    devices = [{"name": f"gpu-{i}", "attributes": attributes} for i in range(pool.gpus)]
    for node in node_names(member, pool):
        place = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": driver, "nodeName": node, "pool": place, "devices": devices}
        objects.append((RESOURCE_SLICES, {"metadata": {"name": f"{node}-{driver}"}, "spec": spec}))
    for resource, body in objects:
        with contextlib.suppress(MemberExists):
            client.create(resource.path(), {"apiVersion": resource.api_version, "kind": resource.kind, **body})


class NodeLifecycle(Controller):
    """Keys are node names."""

    name = "nodes"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._nodes = cluster.informer(NODES)
        self._pods = cluster.informer(PODS)
        self._nodes.listen(lambda _kind, node: self.queue.add(name_of(node)))
        self._pods.listen(self._on_pod)

    def reconcile(self, key: str) -> float | None:
        node = self._nodes.get(f"/{key}")
        if node is None:
            return self._force_away(key)
        remaining_s = reclaimed_in_s(node, self.clock.now())
        if remaining_s is not None and remaining_s <= 0:
            self.client.delete(NODES.path(name=key), uid=uid_of(node))
            return None
        self._show(node)
        return self._evict(key) if is_off(node) else remaining_s

    def _on_pod(self, kind: str, pod: Object) -> None:
        node = self._nodes.get(f"/{node_of(pod)}") if kind == "ADDED" and node_of(pod) else None
        if node is not None and is_off(node):
            self.queue.add(name_of(node))

    def _show(self, node: Object) -> None:
        """Brings the Ready condition and the taints in line with the switch; writes only what differs."""
        off = is_off(node)
        wanted = "Unknown" if off else "True"
        ready = condition(node, "Ready")
        path = NODES.path(name=name_of(node))
        if ready is None or ready["status"] != wanted:
            others = [c for c in (node.get("status") or {}).get("conditions") or [] if c["type"] != "Ready"]
            conditions = [*others, ready_condition(wanted, self.clock.now())]
            answer = self.client.merge_patch(path + "/status", {"status": {"conditions": conditions}})
            self._nodes.learn(answer)
        taints = (node.get("spec") or {}).get("taints") or []
        kept = [t for t in taints if t["key"] not in (UNREACHABLE, NOT_READY)]
        lost = [{"key": UNREACHABLE, "effect": effect} for effect in ("NoSchedule", "NoExecute")] if off else []
        if len(taints) - len(kept) != len(lost):
            self._nodes.learn(self.client.merge_patch(path, {"spec": {"taints": kept + lost}}))

    def _evict(self, name: str) -> float | None:
        """Deletes the pods that tolerate the silence no longer; returns when the next one is due."""
        node = self._nodes.get(f"/{name}")
        ready = condition(node, "Ready") if node else None
        if ready is None or ready["status"] != "Unknown":
            return 0.1
        since = parse_stamp(ready["lastTransitionTime"])
        waits = []
        for pod in self._pods.all():
            if node_of(pod) != name or is_finished(pod) or is_leaving(pod):
                continue
            tolerated = toleration_s(pod)
            if tolerated is None:
                continue
            left_s = since + self.clock.real(tolerated) - self.clock.now()
            if left_s > 0:
                waits.append(left_s)
            else:
                self.client.delete(PODS.path(*split_key(key_of(pod))), uid=uid_of(pod))
        return min(waits, default=None)

    def _force_away(self, name: str) -> float | None:
        """The pods of a node that is no more are removed without its kubelet."""
        for pod in self._pods.all():
            if node_of(pod) == name:
                self.client.delete(PODS.path(*split_key(key_of(pod))), uid=uid_of(pod), grace_s=0)
        return None


def toleration_s(pod: Object) -> float | None:
    """How long (simulated) the pod stays on an unreachable node; None: for ever."""
    taint = {"key": UNREACHABLE, "effect": "NoExecute"}
    tolerations = [t for t in pod["spec"].get("tolerations") or [] if tolerates(t, taint)]
    if first_untolerated([taint], tolerations, ("NoExecute",)):
        return TOLERATED_S
    limits = [float(t["tolerationSeconds"]) for t in tolerations if t.get("tolerationSeconds") is not None]
    return min(limits, default=None)
