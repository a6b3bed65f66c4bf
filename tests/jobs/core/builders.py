"""A cast for the pure tests: clusters north, south, spot; gangs by name. Amounts as people say them."""

import zlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from jobs.core.admission.snapshot import ClusterState, Quota, Snapshot
from jobs.core.gang.types import CapacityHold, Gang
from jobs.core.placement.types import Member, NodeFacts
from jobs.core.policies.propagation import PolicySpec
from quotas.core.accounts.ledger import Ledger
from tests.quotas.core.builders import tree

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
AXIS = ("cpu", "memory", "nvidia.com/gpu", "pods")
APIS = {"kubeflow.org/v1": {"PyTorchJob": "pytorchjobs"}, "batch/v1": {"Job": "jobs"}}
GI = 2**30
POLICY = PolicySpec()
"""One object, as jobs under one policy share it: those that ask the same are then of one class."""


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
        "job_id": zlib.crc32(name.encode()),
        "name": f"default/{name}",
        "api_version": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "roles": tuple(roles),
        "total": total,
        "priority": 0,
        "queued_at": NOON + timedelta(seconds=after_s),
        "policy": POLICY,
    }
    return Gang(**{**defaults, **fields})


def node(gpus: int = 8, cpu: int = 64000, memory: int = 256 * GI, pods: int = 110) -> list[int]:
    return [cpu, memory, gpus, pods]


def cluster(name: str = "north", nodes: list[list[int]] | None = None, *, held_gpus: int = 0, **fields) -> ClusterState:
    """Each node as what is free on it."""
    member = Member(name, apis=APIS, places={"provider": "", "region": "", "zone": ""})
    given = [node()] if nodes is None else nodes
    facts = tuple(_facts(f"{name}-{i}", free) for i, free in enumerate(given))
    held = (CapacityHold(("held", name), name, {"nvidia.com/gpu": held_gpus}),) if held_gpus else ()
    return ClusterState(zlib.crc32(name.encode()), replace(member, **fields), facts, held)


def _facts(name: str, free: list[int]) -> NodeFacts:
    offered = {resource: max(amount, 0) for resource, amount in zip(AXIS, free, strict=True)}
    lent = {resource: -amount for resource, amount in zip(AXIS, free, strict=True) if amount < 0}
    return NodeFacts(name, offered, lent)


def world(gangs: list[Gang], sites: list[ClusterState], **fields) -> Snapshot:
    return Snapshot(tuple(gangs), tuple(sites), **fields)


GPU = "nvidia.com/gpu"
JOBS = "kube-queue/max-jobs"
PLENTY = {"cpu": 10**6, "memory": "900000Gi", GPU: 10**6, JOBS: 10**6, "pods": 10**6}


def a_quota(*children: dict, charges=(), closed=None, total=None, outside="Wait", **of_root: str) -> Quota:
    grown = tree(total or PLENTY, *children, attributes={"outside-jobs": outside, **of_root})
    return Quota(Ledger.from_charges(grown, charges), 1, closed or {})


def under(rules: Quota, gangs, clusters, leaving=(), left=()):
    return world(gangs, clusters, quota=rules, evicting=tuple(leaving), evicted=tuple(left))


def mine(name: str = "llama", leaf: str = "a", workers: int = 2, **fields):
    return gang(name, workers=workers, leaf=f"root/{leaf}", **fields)
