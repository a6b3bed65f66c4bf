"""What is in use of the quota tree now, node by node: used, requested, borrowed, lent; and what is in use beside it.

This app does not know jobs: the app above registers how to read their charges, once, when the process starts.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from quotas.core.accounts import lending
from quotas.core.accounts.budget_accounts import Account as BudgetAccount
from quotas.core.accounts.ledger import Charge, Ledger
from quotas.core.accounts.queue_use import Account
from quotas.core.reclaiming import excess
from quotas.core.trees.amounts import COUNTS, UNLIMITED, Amounts
from quotas.core.trees.budgets import WhenSpent
from quotas.core.trees.tree import ExcessPolicy, Node, Tree

Charges = Callable[[], Iterable[Charge]]
_admitted: list[Charges] = []
_waiting: list[Charges] = []


@dataclass(frozen=True, slots=True)
class Outside:
    """Jobs that belong to no leaf."""

    running: int = 0
    waiting: int = 0
    gpus: int = 0
    """Of those that run."""


_outside: list[Callable[[], Outside]] = []
_recent: list[Callable[[datetime], Mapping[Account, float]]] = []
_budgets: list[Callable[[Tree, datetime], Iterable[BudgetAccount]]] = []


@dataclass(frozen=True, slots=True)
class Amount:
    """One resource of one node, in whole units; ``max`` is None where only the nodes above limit it."""

    used: int
    requested: int
    """Used, and what waits for it."""
    min: int
    max: int | None
    borrowed: int
    """Used above min."""
    lent: int
    """Of its min, what others use now."""


def register_charges(admitted: Charges, waiting: Charges, beside: Callable[[], Outside]) -> None:
    """Charges of jobs that have been admitted, what those that wait would be charged, and the jobs that belong to no leaf."""
    _admitted.append(admitted)
    _waiting.append(waiting)
    _outside.append(beside)


def register_use(recent: Callable[[datetime], Mapping[Account, float]]) -> None:
    """How to read the GPU-seconds that each user of each leaf has used lately."""
    _recent.append(recent)


def register_budgets(accounts: Callable[[Tree, datetime], Iterable[BudgetAccount]]) -> None:
    """How to read what is used of the budgets of a tree."""
    _budgets.append(accounts)


def budgets(tree: Tree, now: datetime) -> dict[str, BudgetAccount]:
    """By path, of every node that has a budget."""
    return {each.path: each for source in _budgets for each in source(tree, now)}


def budget_warnings(tree: Tree, now: datetime) -> tuple[str, ...]:
    """The budgets of the tree that are spent already, and what follows."""
    spent = (each for each in budgets(tree, now).values() if each.is_spent)
    return tuple(f"{each.message}: {_SPENT[each.budget.when_spent]}" for each in spent)


_SPENT = {
    WhenSpent.WAIT: "nothing starts there until then",
    WhenSpent.BORROW_NOTHING: "only jobs within min start there until then",
    WhenSpent.STOP: "nothing starts there until then, and what runs is evicted",
}


@dataclass(frozen=True, slots=True)
class RecentHours:
    """GPU-hours used lately, of a tree that shares by them."""

    by_path: Mapping[str, float] = field(default_factory=dict)
    by_user: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By leaf and user, the most first."""


def recent_hours(tree: Tree, now: datetime) -> RecentHours:
    """Of every node; empty where no node shares by use over time."""
    if not tree.shares_over_time:
        return RecentHours()
    by_path = dict.fromkeys((node.path for node in tree.nodes), 0.0)
    by_user: dict[str, dict[str, float]] = defaultdict(dict)
    accounts = [(account, seconds) for source in _recent for account, seconds in source(now).items()]
    for (leaf, user), seconds in sorted(accounts, key=lambda entry: (-entry[1], entry[0])):
        if leaf not in by_path:
            continue
        by_user[leaf][user] = seconds / 3600
        for node in tree.to_root(leaf):
            by_path[node.path] += seconds / 3600
    return RecentHours(by_path, by_user)


def total_outside() -> Outside:
    """By the leaves written last: in the transaction of a change, as they are under the tree that is to be."""
    totals = [source() for source in _outside]
    return Outside(
        sum(each.running for each in totals), sum(each.waiting for each in totals), sum(each.gpus for each in totals)
    )


def outside_warnings(tree: Tree, outside: Outside) -> tuple[str, ...]:
    """What the tree means for jobs outside it, where it makes them wait; nothing where it states that they run."""
    if not tree.outside_jobs_wait or not (outside.running or outside.waiting):
        return ()
    return (
        f"{outside.running} running jobs outside the tree stay, with {outside.gpus} GPUs that no min can take back;"
        f" {outside.waiting} waiting jobs would wait (NoQuotaForNamespace): list their namespaces at a leaf, or state on the"
        " root the attribute outside-jobs: Run",
    )


def excess_warnings(tree: Tree) -> tuple[str, ...]:
    """The nodes that are above a limit although the tree was accepted, and what follows there."""
    if all(node.attributes.excess is ExcessPolicy.REFUSE for node in tree.nodes):
        return ()
    leaves = {leaf.path for leaf in tree.leaves}
    charges = (charge for source in _admitted for charge in source() if charge.leaf in leaves)
    return tuple(
        f"{overrun.message}: {_FOLLOWS[overrun.policy]} (excess: {overrun.policy})"
        for overrun in excess.find_overruns(Ledger.from_charges(tree, charges))
        if overrun.policy in _FOLLOWS
    )


_FOLLOWS = {
    ExcessPolicy.WAIT: "nothing starts there until enough jobs have ended",
    ExcessPolicy.TAKE_BACK: "jobs are evicted until it is within its limit",
}


def report(tree: Tree) -> dict[str, dict[str, Amount]]:
    """By path and resource: what the tree names, and jobs."""
    return usage_by_path(
        tree, [each for source in _admitted for each in source()], [each for source in _waiting for each in source()]
    )


def report_admitted(tree: Tree) -> dict[str, dict[str, Amount]]:
    """The same without what waits: reading that takes as long as the queues are."""
    return usage_by_path(tree, [each for source in _admitted for each in source()], ())


def usage_by_path(tree: Tree, admitted: Iterable[Charge], waiting: Iterable[Charge]) -> dict[str, dict[str, Amount]]:
    """A job whose leaf has just been removed is about to be resolved again, and counts nowhere."""
    leaves = {leaf.path for leaf in tree.leaves}
    ledger = Ledger.from_charges(tree, [each for each in admitted if each.leaf in leaves])
    used = _by_path(ledger)
    for each in waiting:
        if each.leaf in leaves:
            with suppress(OverflowError):  # a request beyond 64 bits can never fit
                ledger.charge(each)
    requested = _by_path(ledger)
    lent = _lent(tree, used)
    return {
        node.path: {
            resource: _amount(tree, node, resource, amount, requested[node.path][resource], lent)
            for resource, amount in used[node.path].items()
        }
        for node in tree.nodes
    }


def _by_path(ledger: Ledger) -> dict[str, Amounts]:
    return {node.path: ledger.used(node.path) for node in ledger.tree.nodes}


def _amount(
    tree: Tree, node: Node, resource: str, used: int, requested: int, lent: Mapping[tuple[str, str], int]
) -> Amount:
    has_no_min = resource in tree.without_min or (resource in COUNTS and resource not in node.min)
    least, most = node.min.get(resource, 0), node.max.get(resource, UNLIMITED)
    return Amount(
        used=used,
        requested=requested,
        min=least,
        max=None if most >= UNLIMITED else most,
        borrowed=0 if has_no_min else max(0, used - least),
        lent=lent.get((node.path, resource), 0),
    )


def _lent(tree: Tree, used: Mapping[str, Amounts]) -> dict[tuple[str, str], int]:
    """From the root down: what children borrow beyond what their parent has for itself comes from the idle min of others."""
    lent: dict[tuple[str, str], int] = {}
    for resource in tree.resources:
        amounts = {path: of[resource] for path, of in used.items()}
        for node in tree.nodes:
            children = tree.children.get(node.path, ())
            if not children:
                continue
            least = {each.path: each.min.get(resource, 0) for each in children}
            family = lending.Family(node.path, node.min.get(resource, 0), least)
            shares = lending.lent_by_child(family, amounts, lent.get((node.path, resource), 0))
            lent |= {(path, resource): amount for path, amount in shares.items()}
    return lent
