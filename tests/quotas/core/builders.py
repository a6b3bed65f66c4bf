"""A small language for the pure tests: a tree in a few words, one resource (cpu, whole cores) unless said."""

from datetime import UTC, datetime, timedelta
from typing import Any

from quotas.core.accounts.ledger import Charge, Ledger
from quotas.core.queues.order import Unit
from quotas.core.reclaiming.candidates import Running
from quotas.core.trees.amounts import of_job
from quotas.core.trees.parsing import parse_tree
from quotas.core.trees.tree import Tree

JOBS = "kube-queue/max-jobs"
LEND = "alibabacloud.com/lendlimit"


def quota(name: str, low: Any = None, high: Any = None, *children: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """``quota("team", 4, 10)``: a number is cpu; anything else is a resource list."""
    body = {"name": name, **fields}
    for key, value in (("min", low), ("max", high)):
        if value is not None:
            body[key] = value if isinstance(value, dict) else {"cpu": value}
    return {**body, "children": list(children)} if children else body


def manifest(root: dict[str, Any], name: str = "tree", namespace: str = "kube-system") -> dict[str, Any]:
    head = {"apiVersion": "scheduling.sigs.k8s.io/v1beta1", "kind": "ElasticQuotaTree"}
    return {**head, "metadata": {"name": name, "namespace": namespace}, "spec": {"root": root}}


def tree(total: Any, *children: dict[str, Any], **fields: Any) -> Tree:
    reading = parse_tree(manifest(quota("root", total, total, *children, **fields)))
    assert reading.tree is not None, reading.faults
    return reading.tree


def ledger(total: Any, *children: dict[str, Any], **fields: Any) -> Ledger:
    return Ledger.from_charges(tree(total, *children, **fields))


def cpu(cores: float) -> dict[str, int]:
    return {"cpu": int(cores * 1000)}


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def unit(name: str, leaf: str = "a", cores: float = 1, *, priority: int = 0, after_s: int = 0, **fields: Any) -> Unit:
    charge = Charge(f"root/{leaf}", of_job(cpu(cores)), **fields)
    return Unit(name, name, charge, priority, NOON + timedelta(seconds=after_s))


def names(units: Any) -> list[str]:
    return [each.name for each in units]


def running(key: str, leaf: str = "a", cores: float = 1, *, priority: int = 0, at_s: int = 0, **fields: Any) -> Running:
    charge = Charge(f"root/{leaf}", of_job(cpu(cores)), fields.pop("preemptible", True))
    return Running(key, charge, priority, NOON + timedelta(seconds=at_s), **fields)


def occupied(found: Ledger, *jobs: Running) -> tuple[Running, ...]:
    """Charges the ledger with these."""
    for job in jobs:
        found.charge(job.charge)
    return jobs
