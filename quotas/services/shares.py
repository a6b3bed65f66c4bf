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
    return {
        child.path: _share(tree, parent, child, report, recent_hours)
        for parent in tree.nodes
        if parent.attributes.reclaim is ReclaimPolicy.FAIR_SHARE or parent.attributes.fair_share is FairShare.OVER_TIME
        for child in tree.children.get(parent.path, ())
    }


def _share(tree: Tree, parent: Node, child: Node, report: Report, recent_hours: Mapping[str, float]) -> Share:
    siblings, weight = tree.children[parent.path], child.attributes.weight
    weights = sum(each.attributes.weight for each in siblings)
    hours = sum(recent_hours.get(each.path, 0.0) for each in siblings)
    over_time = parent.attributes.fair_share is FairShare.OVER_TIME
    return Share(
        borrowed=_borrowed(tree, parent, report, child) / weight if weight else None,
        recent=recent_hours.get(child.path, 0.0) / hours if over_time and hours else None,
        entitled=weight / weights if weights else None,
    )


def _borrowed(tree: Tree, parent: Node, report: Report, child: Node) -> float:
    largest = 0.0
    for resource, amount in report[child.path].items():
        limits = [report[node.path][resource].max for node in tree.to_root(parent.path)]
        lendable = min((limit for limit in limits if limit is not None), default=None)
        if resource not in COUNTS and lendable is not None:
            largest = max(largest, max(0, amount.used - amount.min) / max(lendable, 1))
    return largest
