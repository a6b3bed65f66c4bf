"""The quota tree and its queues as Kubernetes objects: each renders its rows, and hands writes to the service."""

from collections.abc import Iterable
from typing import Any

from django.db.models import QuerySet, Value

from fleet.errors import NotFound, invalid
from fleet.kube.discovery import Served
from fleet.kube.resources import Resource
from fleet.kube.server.kinds import Object, Write
from fleet.kube.tables import AGE, Column
from fleet.kubeapi.objects.kinds import Kind, RowKind, head, stamp
from quotas import queries
from quotas.core.trees import parsing, schemas
from quotas.core.trees.amounts import format_quantity
from quotas.core.trees.tree import Tree
from quotas.models import Queue, QuotaTree
from quotas.services import queues, trees, usage

_FULL_NAME = "kube-queue/quota-fullname"
_GROUP, _VERSION = parsing.API_VERSION.split("/")
TREES = Resource(_GROUP, _VERSION, "elasticquotatrees", QuotaTree.kind)
QUEUES = Resource("scheduling.x-k8s.io", "v1alpha1", "queues", Queue.kind)
SOURCE = "kubectl"


class QuotaTrees(RowKind):
    """Its status is the use of now, node by node, under the names koord-queue gives it."""

    served = Served(TREES, ("eqt",), document=schemas.DOCUMENT)
    schema, kept = schemas.SCHEMA, schemas.KEPT
    verbs = ("create", "delete", "get", "list", "patch", "update", "watch")
    columns = (
        AGE,
        Column("Generation", lambda shown, now: shown["metadata"].get("generation", ""), wide=True),
        Column("Changed By", lambda shown, now: shown.get("status", {}).get("changedBy", ""), wide=True),
    )

    def rows(self) -> QuerySet[Any]:
        return QuotaTree.objects.all()

    def render(self, row: QuotaTree) -> Object:
        stored = row.manifest["metadata"]
        marks = {key: stored[key] for key in ("labels", "annotations") if stored.get(key)}
        metadata = head(row, creationTimestamp=stamp(row.created_at), **marks)
        tree = queries.tree_now(queries.parse_row(row))
        status = {"changedBy": row.changed_by, "root": _status(tree, usage.report(tree), tree.nodes[0].path)}
        return {**row.manifest, "metadata": metadata, "status": status}

    def create(self, document: Object, write: Write) -> None:
        self.update(document, write)

    def update(self, document: Object, write: Write) -> None:
        write.warnings += trees.save(document, trees.Saving(write.by, write.now, source=SOURCE)).warnings

    def delete(self, name: str, write: Write) -> bool:
        trees.delete(name, by=write.by, now=write.now, source=SOURCE)
        return True


def _status(tree: Tree, report: dict[str, dict[str, usage.Amount]], path: str) -> Object:
    node, amounts = tree.by_path[path], report[path]
    children = [_status(tree, report, each.path) for each in tree.children.get(path, ())]
    status = {
        "name": node.name,
        "namespaces": list(node.namespaces),
        "used": {name: format_quantity(name, each.used) for name, each in amounts.items()},
        "request": {name: format_quantity(name, each.requested) for name, each in amounts.items()},
        "children": children,
    }
    return {key: value for key, value in status.items() if value}


_POLICIES = {"None": Queue.State.OPEN, "Hold": Queue.State.HELD, "Drain": Queue.State.DRAINING}
STOP_POLICIES = {**_POLICIES, "HoldAndDrain": Queue.State.STOPPED}
"""As Kueue spells them, and Drain for what it has no word for: takes no more jobs, and lets go of none."""
_STATED = {state: policy for policy, state in STOP_POLICIES.items()}


class Queues(RowKind):
    """Made from the tree; of a queue only ``spec.stopPolicy`` is anybody's to change."""

    served = Served(QUEUES)
    verbs = ("get", "list", "patch", "update", "watch")
    namespace_field = "shown_namespace"
    columns = (
        AGE,
        Column("State", lambda shown, now: shown.get("status", {}).get("state", ""), wide=True),
        Column("Quota", lambda shown, now: shown["metadata"].get("annotations", {}).get(_FULL_NAME, ""), wide=True),
    )

    def rows(self) -> QuerySet[Any]:
        return queries.queues().annotate(shown_namespace=Value(Queue.namespace))

    def render(self, row: Queue) -> Object:
        status = {"state": row.state, "changedBy": row.state_by, "message": row.state_comment}
        if row.state_at:
            status["lastTransitionTime"] = stamp(row.state_at)
        return {
            "apiVersion": QUEUES.api_version,
            "kind": QUEUES.kind,
            "metadata": head(
                row,
                namespace=Queue.namespace,
                creationTimestamp=stamp(row.created_at),
                labels={"create-by-kubequeue": "true"},
                annotations={_FULL_NAME: row.path, "kube-queue/parent-quota": _parent(row.path)},
            ),
            "spec": {"stopPolicy": _STATED[Queue.State(row.state)]},
            "status": {key: value for key, value in status.items() if value},
        }

    def update(self, document: Object, write: Write) -> None:
        spec = document.get("spec")
        policy = spec.get("stopPolicy", "None") if isinstance(spec, dict) else "None"
        if not isinstance(policy, str) or policy not in STOP_POLICIES:
            raise invalid("spec.stopPolicy", f"must be one of {', '.join(STOP_POLICIES)}, not {policy!r}")
        for key in spec or {}:
            if key != "stopPolicy":
                raise invalid(f"spec.{key}", "is made from the quota tree: change it there")
        name = document["metadata"]["name"]
        row = queries.queues().filter(name=name).first()
        if row is None:
            raise NotFound(f"Queue {name} is gone")
        queues.set_state(row, STOP_POLICIES[policy], by=write.by, now=write.now)


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def namespaces() -> Iterable[str]:
    """Where the tree and its queues are."""
    return (parsing.NAMESPACE, Queue.namespace) if queries.tree_row() else ()


def kinds() -> list[Kind]:
    """Everything of entitlement, as it is served."""
    return [QuotaTrees(), Queues()]
