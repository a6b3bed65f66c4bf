"""Entitlement as the doors and the scheduler read it."""

from collections.abc import Iterable

from django.db.models import Model, QuerySet

from fleet.db import prepared
from quotas.core.trees import parsing
from quotas.core.trees.tree import Tree
from quotas.core.trees.window_trees import Amounts, with_amounts
from quotas.models import Queue, QuotaRevision, QuotaTree


def tree_row() -> QuotaTree | None:
    return next(iter(_TREE.objects()), None)


_TREE = prepared.Rows(lambda _: QuotaTree.objects.order_by("pk")[:1])


def tree() -> Tree | None:
    """The tree in force; None when no quota limits anybody."""
    row = tree_row()
    return None if row is None else parse_row(row)


def parse_row(row: QuotaTree) -> Tree:
    """Raises ValueError for a stored tree that the rules of today refuse: without a limit is not what was meant."""
    read = parsing.parse_tree(row.manifest)
    if read.tree is None:
        message = "; ".join(f"{fault.field}: {fault.detail}" for fault in read.faults)
        raise ValueError(f"the stored {row} is not valid any more: {message}")
    return read.tree


def queues() -> QuerySet[Queue]:
    return Queue.objects.all()


def window_amounts(rows: Iterable[Queue]) -> dict[str, Amounts]:
    """The amounts that open windows set, by path, of these queues."""
    return {row.path: (row.window["min"], row.window["max"]) for row in rows if row.window}


def tree_now(tree: Tree) -> Tree:
    """The tree with the windows that are open, as they are written."""
    return with_amounts(tree, window_amounts(queues().filter(window__isnull=False))) if tree.has_windows else tree


def revisions() -> QuerySet[QuotaRevision]:
    """Newest first."""
    return QuotaRevision.objects.all()


def version() -> int:
    """Grows with every change of the tree or of a queue; 0 without any."""
    return max((version for rows in _NEWEST for (version,) in rows.values()), default=0)


def _newest(model: type[Model]) -> prepared.Rows[Model]:
    return prepared.Rows(
        lambda _: model._default_manager.order_by("-resource_version").values_list("resource_version")[:1]
    )


_NEWEST = (_newest(QuotaTree), _newest(Queue))


def last_generation() -> int:
    """Generations go on counting when a tree was deleted and another follows."""
    newest = revisions().values_list("generation", flat=True).first()
    return newest or 0
