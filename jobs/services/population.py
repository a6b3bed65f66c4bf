"""What the quotas ask of demand, without knowing it: what is charged, what waits, and who would be whose under another tree."""

from collections.abc import Iterator
from typing import Any

from django.db.models import QuerySet

from jobs import snapshot
from jobs.core import losses
from jobs.core.entitlement import belonging
from jobs.core.losses import Loss
from jobs.models import Job
from quotas.core import amounts
from quotas.core.ledger import Charge
from quotas.core.order import Unit
from quotas.core.reclaim import Running
from quotas.core.tree import Tree
from quotas.services import effects, usage

_COLUMNS = (
    "pk", "kind", "namespace", "name", "labels", "leaf", "pinned", "charge", "total", "preemptible", "priority", "queued_at",
    "started_at",
)  # fmt: skip
_SAYS = (
    "pk", "kind", "manifest__spec__elasticPolicy", "manifest__spec__etReplicaSpecs", "manifest__metadata__annotations",
    "status__conditions",
)  # fmt: skip
"""What tells the loss of stopping a job, read without the rest of its manifest."""


def register() -> None:
    usage.register(_admitted, _waiting)
    effects.register_population(of)


def of(tree: Tree) -> effects.Population:
    """Each with the leaf it would have in the tree; who would have none is limited by none."""
    charged = snapshot.charged_jobs()
    lost = losses_of(charged)
    running = [_running(job, charge, lost[job["pk"]]) for job, charge in _charged(charged, tree)]
    waiting = [
        Unit(_key(job), f"{job['namespace']}/{job['name']}", charge, job["priority"], job["queued_at"])
        for job, charge in _charged(_uncharged(), tree)
    ]
    return running, waiting


def losses_of(rows: QuerySet[Job]) -> dict[int, Loss]:
    """What stopping each of them would cost, by primary key."""
    return {pk: _loss(kind, *said) for pk, kind, *said in rows.values_list(*_SAYS)}


def _loss(kind: str, policy: Any, replicas: Any, annotations: Any, conditions: Any) -> Loss:
    return losses.of(kind, {"elasticPolicy": policy, "etReplicaSpecs": replicas}, annotations or {}, conditions)


def _running(job: dict[str, Any], charge: Charge, loss: Loss) -> Running:
    started = job["started_at"] or job["queued_at"]
    return Running(_key(job), charge, job["priority"], started, loss.elastic, loss.checkpointed)


def _charged(rows: QuerySet[Job], tree: Tree) -> Iterator[tuple[dict[str, Any], Charge]]:
    for job in rows.values(*_COLUMNS):
        leaf = belonging(tree, job["namespace"], job["labels"], pinned=job["leaf"] if job["pinned"] else "").leaf
        if leaf:
            yield job, Charge(leaf, job["charge"] or amounts.of_job(job["total"]), job["preemptible"])


def key(kind: str, namespace: str, name: str) -> str:
    """What a job is called where nothing of jobs is known."""
    return f"{kind} {namespace}/{name}"


def _key(job: dict[str, Any]) -> str:
    return key(job["kind"], job["namespace"], job["name"])


def _admitted() -> Iterator[Charge]:
    return (Charge(*row) for row in snapshot.charged_jobs().values_list("leaf", "charge", "preemptible"))


def _waiting() -> Iterator[Charge]:
    rows = _uncharged().exclude(leaf="").values_list("leaf", "total", "preemptible")
    return (Charge(leaf, amounts.of_job(total), preemptible) for leaf, total, preemptible in rows)


def _uncharged() -> QuerySet[Job]:
    return snapshot.waiting_jobs().filter(charge__isnull=True).order_by()
