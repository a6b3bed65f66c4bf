"""The dcgm-exporters of a member: a pod on each node with GPUs, named and labelled as NVIDIA's GPU Operator does."""

from collections.abc import Iterable, Iterator

from fleet.member.client import Object
from simulator.node.nodes import Pool, node_names

NAMESPACE, NAME = "gpu-operator", "nvidia-dcgm-exporter"


def objects(member: str, pools: Iterable[Pool]) -> Iterator[Object]:
    """Their namespace and their pods, which are bound already as a DaemonSet's are."""
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    for pool in pools:
        for node in node_names(member, pool) if pool.gpus else ():
            container = {"name": NAME, "image": "example.com/dcgm-exporter", "ports": [{"containerPort": 9400}]}
            yield {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"{NAME}-{node}", "namespace": NAMESPACE, "labels": {"app": NAME}},
                "spec": {"nodeName": node, "containers": [container], "tolerations": [{"operator": "Exists"}]},
            }
