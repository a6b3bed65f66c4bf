"""A cast for the engine's tests: clusters of nodes, gangs and what they ask, as people say them."""

from collections.abc import Mapping
from datetime import UTC, datetime

from jobs.core.gang.requirements import (
    AntiAffinity,
    GangRequirements,
    PodRequirements,
    RoleRequirements,
    TopologyConstraint,
)
from jobs.core.gang.types import Gang
from jobs.core.placement.engine import Engine
from jobs.core.placement.types import Assignment, Member, NodeFacts

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
APIS = {"kubeflow.org/v1": {"PyTorchJob": "pytorchjobs"}}
GPU = "nvidia.com/gpu"


def ask(gpus: int = 1, cpu: int = 0, **fields) -> PodRequirements:
    return PodRequirements.from_request({GPU: gpus, "cpu": cpu, "pods": 1}, **fields)


def demand(
    *parts: tuple[str, int, PodRequirements],
    apart: tuple[AntiAffinity, ...] = (),
    within: TopologyConstraint | None = None,
) -> GangRequirements:
    return GangRequirements(tuple(RoleRequirements(*part) for part in parts), apart, within or TopologyConstraint())


def workers(pods: int, gpus: int = 1, **fields) -> GangRequirements:
    return demand(("worker", pods, ask(gpus)), **fields)


def gang(**fields) -> Gang:
    given = {"job_id": 1, "name": "default/llama", "api_version": "kubeflow.org/v1", "kind": "PyTorchJob"}
    given |= {"roles": (), "total": {}, "priority": 0, "queued_at": NOON, "policy": None}
    return Gang(**{**given, **fields})


def node(name: str, gpus: int = 8, used: int = 0, cpu: int = 64000, cpu_used: int = 0, **fields) -> NodeFacts:
    allocatable = {"cpu": cpu, GPU: gpus, "pods": 110}
    return NodeFacts(name, allocatable, {"cpu": cpu_used, GPU: used, "pods": 5}, **fields)


def fleet(clusters: Mapping[str, list[NodeFacts]], **members: Member) -> Engine:
    engine = Engine()
    for name, nodes in clusters.items():
        engine.set_cluster(members.get(name) or Member(name, apis=APIS))
        for each in nodes:
            engine.set_node(name, each)
    return engine


def find(engine: Engine, wanted: GangRequirements, **fields) -> Assignment | None:
    return engine.find(gang(**fields), wanted, NOON)
