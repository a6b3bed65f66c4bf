"""What the demo's teams work on: a dozen jobs of different kinds that together ask for more than the fleet has. Pure."""

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

TEAMS = ("pretrain", "finetune", "vision", "speech")
"""Namespaces, each with the leaf of its name in quota-tree.yaml."""
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(frozen=True, slots=True)
class Work:
    """One line of work: its jobs come one after the other."""

    name: str
    team: str
    kind: str
    pods: int
    gpus: int
    """Of one pod."""
    shortest_s: int
    longest_s: int
    pause_s: int
    model: str = ""
    """The GPU model it insists on."""
    annotations: Mapping[str, str] = field(default_factory=dict)


TEAMWORK = (
    Work("llama-8b", "pretrain", "PyTorchJob", 3, 8, 600, 1500, 60, "NVIDIA-A100-80GB"),
    Work("whisper-large", "speech", "PyTorchJob", 2, 2, 180, 500, 40),
    Work("lora-chat", "finetune", "PyTorchJob", 1, 2, 60, 200, 20),
    Work("resnet-sweep", "vision", "RayJob", 4, 1, 120, 400, 30),
    Work("lora-code", "finetune", "PyTorchJob", 2, 1, 90, 260, 25),
    Work("moe-router", "pretrain", "JobSet", 2, 8, 400, 900, 90, "NVIDIA-H100-80GB"),
    Work("detr-eval", "vision", "TFJob", 2, 1, 45, 120, 30),
    Work("lora-sql", "finetune", "Job", 2, 1, 60, 240, 30),
    Work("tts-vocoder", "speech", "MPIJob", 4, 1, 120, 300, 60),
    Work("llama-ablation", "pretrain", "PyTorchJob", 4, 4, 300, 700, 120),
    Work("segment-anything", "vision", "PyTorchJob", 4, 4, 300, 600, 60, "NVIDIA-A100-80GB"),
    Work("lora-legal", "finetune", "PyTorchJob", 1, 1, 120, 300, 45),
)


def manifest(work: Work, rng: random.Random) -> str:
    """The next job of this line, as JSON, which is YAML too."""
    body = _BODIES[work.kind](work, f"{rng.randint(work.shortest_s, work.longest_s)}s")
    name = f"{work.name}-{''.join(rng.choice(_LETTERS) for _ in range(4))}"
    labels = {"convoy.dev/demo": work.name, "team": work.team}
    head = {"metadata": {"name": name, "namespace": work.team, "labels": labels}}
    return json.dumps({**body, **head})


def _template(work: Work, duration: str, **extra: Any) -> dict[str, Any]:
    name = _CONTAINERS.get(work.kind, "train")
    limits = {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": work.gpus}
    spec: dict[str, Any] = {
        "containers": [{"name": name, "image": "example.com/train", "resources": {"limits": limits}}],
        **extra,
    }  # fmt: skip
    if work.model:
        spec["nodeSelector"] = {"nvidia.com/gpu.product": work.model}
    return {"metadata": {"annotations": {"convoy.dev/duration": duration}}, "spec": spec}


_CONTAINERS = {"PyTorchJob": "pytorch", "TFJob": "tensorflow"}


def _light(name: str, duration: str, **extra: Any) -> dict[str, Any]:
    """A pod without a GPU: a launcher, a driver, a head."""
    annotations = {"convoy.dev/duration": duration} if duration else {}
    limits = {"cpu": "1", "memory": "2Gi"}
    containers = [{"name": name, "image": "example.com/train", "resources": {"limits": limits}}]
    return {"metadata": {"annotations": annotations}, "spec": {"containers": containers, **extra}}


def _pytorch(work: Work, duration: str) -> dict[str, Any]:
    template = _template(work, duration)
    roles: dict[str, Any] = {"Master": {"replicas": 1, "template": template}}
    if work.pods > 1:
        roles["Worker"] = {"replicas": work.pods - 1, "template": template}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "spec": {"pytorchReplicaSpecs": roles}}


def _tensorflow(work: Work, duration: str) -> dict[str, Any]:
    roles = {
        "Chief": {"replicas": 1, "template": _light("tensorflow", duration)},
        "Worker": {"replicas": work.pods, "template": _template(work, duration)},
    }
    return {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "spec": {"tfReplicaSpecs": roles}}


def _mpi(work: Work, duration: str) -> dict[str, Any]:
    roles = {
        "Launcher": {"replicas": 1, "template": _light("launcher", duration)},
        "Worker": {"replicas": work.pods, "template": _template(work, "24h")},
    }
    spec = {"slotsPerWorker": 1, "runPolicy": {"cleanPodPolicy": "Running"}, "mpiReplicaSpecs": roles}
    return {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "spec": spec}


def _ray(work: Work, duration: str) -> dict[str, Any]:
    workers = {"groupName": "gpus", "replicas": work.pods, "minReplicas": 1, "maxReplicas": work.pods}
    cluster = {
        "headGroupSpec": {"rayStartParams": {}, "template": _light("ray-head", "")},
        "workerGroupSpecs": [{**workers, "rayStartParams": {}, "template": _template(work, "24h")}],
    }
    submitter = _light("ray-job-submitter", duration, restartPolicy="Never")
    spec = {"entrypoint": "python /opt/sweep.py", "submitterPodTemplate": submitter, "rayClusterSpec": cluster}
    return {"apiVersion": "ray.io/v1", "kind": "RayJob", "spec": spec}


def _job_set(work: Work, duration: str) -> dict[str, Any]:
    job = {
        "parallelism": work.pods,
        "completions": work.pods,
        "completionMode": "Indexed",
        "template": _template(work, duration, restartPolicy="Never"),
    }
    jobs = [{"name": "workers", "replicas": 1, "template": {"spec": job}}]
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "spec": {"replicatedJobs": jobs}}


def _batch(work: Work, duration: str) -> dict[str, Any]:
    template = _template(work, duration, restartPolicy="Never")
    spec = {"parallelism": work.pods, "completions": work.pods, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "spec": spec}


_BODIES = {
    "PyTorchJob": _pytorch,
    "TFJob": _tensorflow,
    "MPIJob": _mpi,
    "RayJob": _ray,
    "JobSet": _job_set,
    "Job": _batch,
}
