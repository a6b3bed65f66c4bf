"""The GPUs of one node as people look at them: how they are linked, which are well, which pod has which.

Asked of the member now; nothing of it is kept. Pods of namespaces that the reader may not see have no name.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

from fleet.errors import NotFound, Unavailable
from fleet.member.errors import MemberAway, MemberRefused
from fleet.models import Cluster
from fleet.services.members import member_clients
from jobs.core.topology import gpu_links
from jobs.services.dispatch.copies import gpu_sets


@dataclass(frozen=True, slots=True)
class Gpu:
    index: int
    healthy: bool
    taken: bool
    namespace: str = ""
    pod: str = ""


@dataclass(frozen=True, slots=True)
class NodeDevices:
    cluster: str
    node: str
    topology: bool
    """Whether it hands out GPUs by their links; without that nothing below is known."""
    links: tuple[tuple[str, ...], ...] = ()
    bandwidth: tuple[tuple[float, ...], ...] = ()
    gpus: tuple[Gpu, ...] = ()


def of_node(cluster: Cluster, name: str, namespaces: Container[str] | None) -> NodeDevices:
    """``namespaces`` are those whose pods may be named, None: all."""
    node = cluster.nodes.filter(name=name).first()
    if node is None:
        raise NotFound(f"{cluster.name} has no node {name}")
    if node.labels.get(gpu_links.SWITCH) != gpu_links.ON:
        return NodeDevices(cluster.name, name, topology=False)
    client = member_clients.client(cluster)
    try:
        devices = gpu_sets.devices(client).get(name)
        pods = gpu_sets.pods_on(client, name) if devices else []
    except (MemberAway, MemberRefused) as e:
        raise Unavailable(f"{cluster.name} does not report its GPUs: {e}") from e
    if devices is None:
        return NodeDevices(cluster.name, name, topology=True)
    owners = {gpu: pod for pod in pods for gpu in gpu_links.given(pod)}
    gpus = tuple(_gpu(i, i in devices.healthy, owners.get(i), namespaces) for i in range(len(devices.links)))
    return NodeDevices(cluster.name, name, True, devices.links, devices.bandwidth, gpus)


def _gpu(index: int, healthy: bool, pod: Mapping[str, Any] | None, namespaces: Container[str] | None) -> Gpu:
    if pod is None:
        return Gpu(index, healthy, taken=False)
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    if namespaces is not None and namespace not in namespaces:
        return Gpu(index, healthy, taken=True)
    return Gpu(index, healthy, True, namespace, name)
