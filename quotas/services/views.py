"""The quota tree as one person sees it: every node with its queue, its use of now, and whether it is theirs to change."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from quotas import queries
from quotas.core.accounts.budget_accounts import Account
from quotas.core.trees import parsing, window_trees, windows
from quotas.core.trees.tree import OutsideJobs
from quotas.models import Queue, QuotaTree
from quotas.services import edits, scopes, shares, usage

_MOST_USERS = 50


@dataclass(frozen=True, slots=True)
class UserHours:
    user: str
    gpu_hours: float


@dataclass(frozen=True, slots=True)
class WindowView:
    begin: datetime
    end: datetime
    is_open: bool
    min: Mapping[str, int]
    max: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class NodeView:
    path: str
    name: str
    parent: str
    leaf: bool
    namespaces: tuple[str, ...]
    attributes: dict[str, str]
    queue: str
    queue_state: str
    queue_state_by: str
    queue_comment: str
    may_run: bool
    may_edit: bool
    may_add: bool
    resources: dict[str, usage.Amount]
    recent_gpu_hours: float | None
    """Used lately; None where the tree does not share by it."""
    share: shares.Share | None
    """What it is compared by with its siblings; None where they do not share fairly."""
    budget: Account | None
    """What is used of its budget; None: it has none."""
    windows: list[WindowView]
    """Of its windows what is open and what opens next."""
    users: list[UserHours]
    """Of a leaf, the most first: all of them for users who may run its queue, for others their own."""


@dataclass(frozen=True, slots=True)
class TreeView:
    name: str
    uid: UUID
    generation: int
    resource_version: int
    created_at: datetime
    changed_by: str
    manifest: dict[str, Any]
    warnings: tuple[str, ...]
    nodes: list[NodeView]
    outside_jobs: str
    outside: usage.Outside


def tree_view_of(row: QuotaTree, user: Any, now: datetime) -> TreeView:
    tree, scope = queries.parse_row(row), scopes.scope_of(user)
    recent = usage.recent_hours(tree, now)
    queues = {queue.path: queue for queue in queries.queues()}
    tree = window_trees.with_amounts(tree, queries.window_amounts(queues.values()))
    report, accounts = usage.report(tree), usage.budgets(tree, now)
    compared = shares.of_tree(tree, report, recent.by_path)
    written = dict(edits.walk(row.manifest))
    nodes = [
        NodeView(
            **_queue(queues.get(node.path)),
            path=node.path,
            name=node.name,
            parent=node.parent,
            leaf=node.path not in tree.children,
            namespaces=node.namespaces,
            attributes={key: str(value) for key, value in (written[node.path].get("attributes") or {}).items()},
            may_run=scope.may_run(node.path),
            may_edit=scope.may_edit(node.path),
            may_add=scope.may_edit(f"{node.path}/"),
            resources=report[node.path],
            budget=accounts.get(node.path),
            windows=[
                WindowView(each.begin, each.end, each.begin <= now, each.window.min, each.window.max)
                for each in windows.next_openings(node, now)
            ],
            recent_gpu_hours=recent.by_path.get(node.path),
            share=compared.get(node.path),
            users=[
                UserHours(name, hours)
                for name, hours in recent.by_user.get(node.path, {}).items()
                if name == user.get_username() or scope.may_run(node.path)
            ][:_MOST_USERS],
        )
        for node in tree.nodes
    ]
    return TreeView(
        name=row.name,
        uid=row.uid,
        generation=row.generation,
        resource_version=row.resource_version,
        created_at=row.created_at,
        changed_by=row.changed_by,
        manifest=row.manifest,
        warnings=parsing.parse_tree(row.manifest).warnings,
        nodes=nodes,
        outside_jobs=OutsideJobs.WAIT if tree.outside_jobs_wait else OutsideJobs.RUN,
        outside=usage.total_outside(),
    )


def _queue(queue: Queue | None) -> dict[str, str]:
    """The queues are read after the tree: one may be gone by then."""
    named = ("queue", "queue_state", "queue_state_by", "queue_comment")
    values = (queue.name, queue.state, queue.state_by, queue.state_comment) if queue else ("",) * 4
    return dict(zip(named, values, strict=True))
