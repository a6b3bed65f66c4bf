"""What the children of a node are compared by where they share fairly: what they borrow now, what they used of late, by weight.

For people who look at the tree. The scheduler computes its own figures, of the resources that a job asks for
(`quotas.core.accounts.borrowed_shares`, `quotas.core.queues.recent_use`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from quotas.core.trees.amounts import COUNTS
from quotas.core.trees.tree import FairShare, Node, ReclaimPolicy, Tree
from quotas.services.usage import Amount

Report = Mapping[str, Mapping[str, Amount]]


@dataclass(frozen=True, slots=True)
class Share:
    borrowed: float | None
    """The largest part of any resource that the node borrows of what there is for it and its siblings, divided by its weight;
    None: it has weight 0, and comes after all others."""
    recent: float | None
    """Its part of what all children of its parent used of late; None: that does not count here, or they had used nothing."""
    entitled: float | None
    """Its part of their weights; None: they have none."""


def of_tree(tree: Tree, report: Report, recent_hours: Mapping[str, float]) -> dict[str, Share]:
    """By path, of every node below a parent with `reclaim: FairShare` or `fair-share: OverTime`."""
    shares: dict[str, Share] = {}
    for parent in tree.nodes:
        if parent.attributes.reclaim is ReclaimPolicy.FAIR_SHARE or parent.attributes.fair_share is FairShare.OVER_TIME:
            shares |= _of_children(tree, parent, report, recent_hours)
    return shares


def _of_children(tree: Tree, parent: Node, report: Report, recent_hours: Mapping[str, float]) -> dict[str, Share]:
    children = tree.children.get(parent.path, ())
    weights = sum(child.attributes.weight for child in children)
    hours = {child.path: recent_hours.get(child.path, 0.0) for child in children}
    counted = sum(hours.values()) if parent.attributes.fair_share is FairShare.OVER_TIME else 0.0
    lendable = _lendable(tree, parent, report)
    return {
        child.path: Share(
            borrowed=_borrowed(report[child.path], lendable) / weight if (weight := child.attributes.weight) else None,
            recent=hours[child.path] / counted if counted else None,
            entitled=weight / weights if weights else None,
        )
        for child in children
    }


def _lendable(tree: Tree, parent: Node, report: Report) -> dict[str, int]:
    """By resource, the least max on the way to the root; resources without one have no share."""
    rows = [report[node.path] for node in tree.to_root(parent.path)]
    limits = {name: [row[name].max for row in rows if name in row] for name in rows[0] if name not in COUNTS}
    stated = {name: [limit for limit in of_name if limit is not None] for name, of_name in limits.items()}
    return {name: min(of_name) for name, of_name in stated.items() if of_name}


def _borrowed(amounts: Mapping[str, Amount], lendable: Mapping[str, int]) -> float:
    shares = (
        max(0, amounts[name].used - amounts[name].min) / max(limit, 1)
        for name, limit in lendable.items()
        if name in amounts
    )
    return max(shares, default=0.0)
