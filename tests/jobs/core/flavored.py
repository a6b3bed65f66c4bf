"""Fleets of two GPU models: clusters whose nodes are labelled, queues with amounts by flavor, and gangs placed there."""

import json
from dataclasses import replace

from jobs.core.admission.snapshot import ClusterState, Quota
from jobs.core.gang.types import AdmittedGang, CapacityHold, Gang
from jobs.core.placement.types import NodeFacts
from quotas.core.trees.flavors import amount_name
from tests.jobs.core.builders import GPU, NOON, PLENTY, a_quota, cluster, gang, request
from tests.quotas.core.builders import quota, tree

LABEL = "nvidia.com/gpu.product"
MODELS = ("h100", "a100")
H100, A100 = map(amount_name, MODELS)
TABLE = {name: {LABEL: name.upper()} for name in MODELS}
HOST = {"cpu": 64000, "memory": 256 * 2**30, "pods": 110}


def site(name: str, *, h100: int = 0, a100: int = 0, gpus: int = 8, holds=()) -> ClusterState:
    """A cluster with so many nodes of each model."""
    nodes = [(model, i) for model, many in (("h100", h100), ("a100", a100)) for i in range(many)]
    facts = tuple(NodeFacts(f"{name}-{model}-{i}", {**HOST, GPU: gpus}, labels=TABLE[model]) for model, i in nodes)
    return replace(cluster(name, []), nodes=facts, holds=tuple(holds))


def rules(*children: dict, total: dict, charges=(), **attributes: str) -> Quota:
    stated = {"flavors": json.dumps(TABLE), "outside-jobs": "Wait", **attributes}
    rest = {name: amount for name, amount in PLENTY.items() if name != GPU}
    return a_quota_of(tree({**rest, **total}, *children, attributes=stated), charges)


def a_quota_of(grown, charges) -> Quota:
    made = a_quota()
    return replace(made, ledger=type(made.ledger).from_charges(grown, charges))


def limits(gpus: int, **flavors: int) -> dict[str, int]:
    return {GPU: gpus, **{amount_name(name): amount for name, amount in flavors.items()}}


def leaf(name: str, low: dict | None, high: dict | None = None, **attributes: str) -> dict:
    return quota(name, low, high, attributes=attributes)


def job(name: str, leaf: str, gpus: int = 8, *, pods: int = 1, on: str = "", **fields) -> Gang:
    """Pods of so many GPUs; ``on``: its node selector names this model."""
    roles = (("worker", pods, request(gpus)),)
    total = {resource: pods * amount for resource, amount in request(gpus).items()}
    made = gang(name, leaf=f"root/{leaf}", roles=roles, total=total, **fields)
    if not on:
        return made
    parts = tuple(replace(part, ask=replace(part.ask, selector=((LABEL, on.upper()),))) for part in made.demand.parts)
    return replace(made, needs=replace(made.demand, parts=parts))


def running(waiting: Gang, flavor: str, cluster: str, nodes: tuple[str, ...]) -> tuple[AdmittedGang, CapacityHold]:
    """The gang as it runs on nodes of a flavor, one pod on each, with what it holds there."""
    placed = replace(waiting, flavors=((amount_name(flavor), waiting.total[GPU]),))
    key = ("run", waiting.job_id)
    hold = CapacityHold(key, cluster, waiting.total, ((dict(waiting.roles[0][2]), nodes),))
    return AdmittedGang(
        placed.job_id, placed.name, placed.charge, placed.priority, NOON, cluster, placed.total, hold_key=key
    ), hold
