"""What is used of the budgets of a tree, and the tree that holds while some of them are spent.

Use is GPUs × time from the placement of an attempt to its end, whatever became of it. Knows no jobs: attempts come in as spans.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from fleet.core import devices
from quotas.core.trees.budgets import Budget
from quotas.core.trees.flavors import GPU, flavor_of
from quotas.core.trees.tree import ExcessPolicy, Node, Tree

_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Span:
    """GPUs of one leaf from one moment to another, in milliseconds since the epoch; ``until`` None: they are in use still."""

    leaf: str
    gpus: int
    since: int
    until: int | None


@dataclass(frozen=True, slots=True)
class Account:
    """The budget of a node and what is used of it in the present period."""

    path: str
    budget: Budget
    begin: datetime
    end: datetime
    used_ms: int
    """GPU-milliseconds until now."""
    running: int
    """GPUs in use now."""
    now: datetime

    @property
    def used_hours(self) -> float:
        return self.used_ms / _HOUR_MS

    @property
    def is_spent(self) -> bool:
        return self.used_ms >= self.budget.gpu_hours * _HOUR_MS

    @property
    def forecast_hours(self) -> float:
        """Used by the end of the period if what runs now runs on and nothing else starts."""
        return self.used_hours + self.running * ((self.end - self.now) / timedelta(hours=1))

    @property
    def spent_at(self) -> datetime | None:
        """When it is spent at that rate; None: not in this period, or it is already."""
        if self.is_spent or self.forecast_hours < self.budget.gpu_hours:
            return None
        return self.now + timedelta(hours=(self.budget.gpu_hours - self.used_hours) / self.running)

    @property
    def message(self) -> str:
        budget = f"{self.used_hours:.1f} of {self.budget.gpu_hours:g} GPU-hours of this {self.budget.per}"
        return f"{self.path} has spent its budget: {budget} (UTC); it is renewed at {self.end:%F %T} UTC"


def accounts(tree: Tree, spans: Iterable[Span], now: datetime) -> list[Account]:
    """Of every node with a budget, in the order of the tree. ``spans``: all that touch the longest of its periods."""
    budgets = {node.path: node.attributes.time.budget for node in tree.nodes}
    stated = {path: budget for path, budget in budgets.items() if budget is not None}
    bounds = {period: period.bounds(now) for period in {budget.per for budget in stated.values()}}
    begins = {period: _ms(begin) for period, (begin, _) in bounds.items()}
    used, running, until_now = dict.fromkeys(stated, 0), dict.fromkeys(stated, 0), _ms(now)
    owners: dict[str, list[str]] = {}
    for span in spans:
        if (paths := owners.get(span.leaf)) is None:
            paths = owners[span.leaf] = [each for each in stated if f"{span.leaf}/".startswith(f"{each}/")]
        until = until_now if span.until is None else min(span.until, until_now)
        for path in paths:
            used[path] += span.gpus * max(0, until - max(span.since, begins[stated[path].per]))
            running[path] += span.gpus if span.until is None else 0
    return [
        Account(path, budget, *bounds[budget.per], used[path], running[path], now) for path, budget in stated.items()
    ]


def begin_of_longest(tree: Tree | None, now: datetime) -> datetime | None:
    """Since when use counts for some budget; None: no node has one."""
    budgets = (node.attributes.time.budget for node in (tree.nodes if tree else ()))
    return min((budget.per.bounds(now)[0] for budget in budgets if budget is not None), default=None)


def counts(resource: str) -> bool:
    """Whether what is used of the resource counts for budgets: devices of every vendor, and their memory."""
    return resource in (GPU, devices.MEMORY, devices.COUNT) or flavor_of(resource) != "" or devices.is_device(resource)


def without_borrowing(tree: Tree, paths: Collection[str], offered: Iterable[str] = ()) -> Tree:
    """The tree, in which these nodes may use their min of devices and no more. What they use above it goes on.

    ``offered``: resources that the fleet has, whether or not the tree names them.
    """
    if not paths:
        return tree
    counted = {GPU} | {name for name in (*tree.resources, *offered) if counts(name)}
    return replace(tree, nodes=tuple(_at_min(node, counted) if node.path in paths else node for node in tree.nodes))


def _at_min(node: Node, counted: Collection[str]) -> Node:
    most = {**node.max, **{name: node.min.get(name, 0) for name in counted}}
    return replace(node, max=most, attributes=replace(node.attributes, excess=ExcessPolicy.WAIT))


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)
