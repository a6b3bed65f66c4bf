"""A cast for the pure tests: clusters north, south, spot; gangs by name. Amounts as people say them."""

from datetime import UTC, datetime, timedelta

import numpy as np

from jobs.core.policy import PolicySpec
from jobs.core.world import Axis, Cluster, Gang, World

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
AXIS = Axis.of(["cpu", "memory", "nvidia.com/gpu", "pods"])
APIS = {"kubeflow.org/v1": {"PyTorchJob": "pytorchjobs"}, "batch/v1": {"Job": "jobs"}}
GI = 2**30


def request(gpus: int = 1, cpu: int = 1000, memory: int = GI) -> dict[str, int]:
    return {"cpu": cpu, "memory": memory, "nvidia.com/gpu": gpus, "pods": 1}


def gang(name: str = "llama", *, masters: int = 1, workers: int = 2, gpus: int = 1, after_s: int = 0, **fields) -> Gang:
    roles = [("master", masters, request(gpus)), ("worker", workers, request(gpus))]
    roles = [role for role in roles if role[1]]
    total: dict[str, int] = {}
    for _, replicas, asked in roles:
        for resource, amount in asked.items():
            total[resource] = total.get(resource, 0) + replicas * amount
    defaults = {
        "job_id": abs(hash(name)) % 10**6,
        "name": f"default/{name}",
        "api_version": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "roles": tuple(roles),
        "total": total,
        "priority": 0,
        "queued_at": NOON + timedelta(seconds=after_s),
        "policy": PolicySpec(),
    }
    return Gang(**{**defaults, **fields})


def node(gpus: int = 8, cpu: int = 64000, memory: int = 256 * GI, pods: int = 110) -> list[int]:
    return [cpu, memory, gpus, pods]


def cluster(name: str = "north", nodes: list[list[int]] | None = None, *, held_gpus: int = 0, **fields) -> Cluster:
    free = np.array([node()] if nodes is None else nodes, dtype=np.int64).reshape(-1, 4)
    held = np.array([0, 0, held_gpus, 0], dtype=np.int64)
    defaults = {
        "id": abs(hash(name)) % 10**6,
        "name": name,
        "ready": True,
        "cordoned": False,
        "synced": True,
        "labels": {},
        "places": {"provider": "", "region": "", "zone": ""},
        "taints": (),
        "apis": APIS,
        "nodes": free,
        "capacity": free.sum(axis=0),
        "free": free.sum(axis=0) - held,
    }
    return Cluster(**{**defaults, **fields})


def world(gangs: list[Gang], clusters: list[Cluster]) -> World:
    return World(AXIS, tuple(gangs), tuple(clusters))
