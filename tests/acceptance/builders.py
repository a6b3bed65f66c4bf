"""Manifests and fleets that several statements share: a policy, an MPIJob, a member whose nodes have GPU links."""

from pathlib import Path

import yaml

from fleet.kube.resources import NODES
from fleet.models import Node

POLICY = (Path(__file__).parents[2] / "docs" / "examples" / "policy.yaml").read_text()


def mpi_job(name: str = "vgg16", *, version: str = "v2beta1", workers: int = 4, duration: str = "1h") -> str:
    def role(replicas: int, gpus: int) -> dict:
        limits = {"nvidia.com/gpu": gpus} if gpus else {"cpu": "1"}
        container = {"name": "mpi", "image": "example.com/bench", "resources": {"limits": limits}}
        template = {"metadata": {"annotations": {"convoy.dev/duration": duration}}, "spec": {"containers": [container]}}
        return {"replicas": replicas, "template": template}

    specs = {"Launcher": role(1, 0), "Worker": role(workers, 1)}
    head = {"apiVersion": f"kubeflow.org/{version}", "kind": "MPIJob", "metadata": {"name": name}}
    return yaml.safe_dump({**head, "spec": {"mpiReplicaSpecs": specs}})


def near(text: str, **notes: str) -> str:
    job = yaml.safe_load(text)
    job["metadata"]["annotations"] = {f"convoy.dev/{key.replace('_', '-')}": value for key, value in notes.items()}
    return yaml.safe_dump(job)


def label(world, cluster: str, node: str, **labels: str) -> None:
    """``kubectl label node``, at the member."""
    named = {key.replace("__", "/").replace("_", "."): value for key, value in labels.items()}
    world.clients[cluster].merge_patch(NODES.path(name=node), {"metadata": {"labels": named}})


def linked(world, cluster: str, *nodes: int) -> None:
    """A member whose nodes are DGX-1s that hand out GPUs by their links."""
    world.member(cluster, *nodes)
    for i in range(len(nodes)):
        node = f"{cluster}-pool{i}-0"
        label(world, cluster, node, nvidia_com__gpu_product="Tesla-V100-SXM2-16GB")
        label(world, cluster, node, ack_node_gpu_schedule="topology")
    known = Node.objects.filter(cluster__name=cluster)
    world.until(lambda: all("aliyun.com/gpu" in each.allocatable for each in known.all()), "the nodes offer their GPUs")


LINKED = "aliyun.com/gpu"
GROUP, VISIBLE = "topology.kubernetes.io/gpu-group", "topology.kubernetes.io/gpu-visible"


def by_links(text: str) -> str:
    """As ``--gputopology=true`` makes it: GPUs are asked by their links."""
    return text.replace("nvidia.com/gpu", LINKED)


def gpus_of(world, cluster: str, job: str, note: str = GROUP) -> list[str]:
    pods = [pod for pod in world.pods(cluster) if pod["metadata"]["name"].startswith(f"{job}-worker")]
    return [pod["metadata"].get("annotations", {}).get(note, "") for pod in pods]


def occupied(world, cluster: str, gpus: str) -> None:
    """A pod of a stranger has these GPUs of the first node."""
    labels = {LINKED: str(len(gpus.split(",")))}
    container = {"name": "c", "image": "example.com/x", "resources": {"limits": labels}}
    spec = {"nodeName": f"{cluster}-pool0-0", "containers": [container]}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "stranger", "annotations": {GROUP: gpus}},
        "spec": spec,
    }
    world.clients[cluster].create("/api/v1/namespaces/default/pods", body)
    world.until(lambda: Node.objects.get().requested.get(LINKED, 0) > 0, "the stranger's pod is counted")
