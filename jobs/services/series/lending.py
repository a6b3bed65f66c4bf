"""Which queues lent GPU-hours to which over a time, from the spans of attempts and the quota trees that were in force then.

What is borrowed and lent of one moment is defined by `quotas.core.accounts.lending`, as for the tree of now. An attempt is
charged from its placement to its end. A min for GPUs of several kinds or flavors counts as their sum.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from fleet.core import devices
from fleet.errors import invalid
from jobs.core.explain.accounting import Span
from jobs.services.lifecycle.accounting import usage_spans
from jobs.services.series import periods
from quotas.core.accounts import lending
from quotas.core.accounts.lending import Change, Family, Flow
from quotas.core.trees import parsing, window_trees, windows
from quotas.core.trees.tree import Node, Tree
from quotas.services import past_trees

LONGEST = timedelta(days=31)
MOST_SPANS = 100_000
MOST_TREES = past_trees.MOST_TREES
"""Changes of the tree, and of its windows, in one answer."""
MOST_NODES = 100_000
"""Of all these trees together."""
MOST_STEPS = 5_000_000
"""Of the counting: a change of use is a step for each child of the nodes above it. 10,000 attempts in 100 queues side by side
take 2,000,000."""
MOST_FLOWS = 20_000
"""Pairs of a lender and a borrower in one answer."""
Era = tuple[int, Sequence[Family]]


@dataclass(frozen=True, slots=True)
class Report:
    flows: Sequence[tuple[Flow, float]]
    """GPU-milliseconds, the most first. A node that the reader may not see has an empty path."""
    without_tree: int
    """Milliseconds of the time in which no quota tree was in force, or none that can be read today."""


def read(begin: datetime, end: datetime, now: datetime, visible: Collection[str] | None) -> Report:
    """``visible`` are the paths that the reader may see, None: all. What is between two others is left out."""
    periods.check(begin, end, LONGEST)
    until = max(begin, min(end, now))
    spans = periods.bounded(usage_spans.of_attempts(begin, until, now), MOST_SPANS, "spans")
    bounds = periods.milliseconds(begin), periods.milliseconds(until)
    changes = [change for span in spans if span.number and span.gpus and span.leaf for change in _changes(span)]
    eras = list(periods.bounded(_eras(begin, until, now), MOST_TREES, "changes of the quota tree"))
    try:
        sums = lending.add_up(eras, changes, bounds[1], MOST_STEPS)
    except lending.TooMuchWork:
        detail = f"has more changes of use, in so large a tree, than one answer counts ({MOST_STEPS} steps) until to"
        raise invalid("from", f"{detail}: choose a later from") from None
    if len(sums) > MOST_FLOWS:
        raise invalid("from", f"has more than {MOST_FLOWS} pairs of lender and borrower until to: choose a later from")
    rows = sorted(_folded(sums, visible).items(), key=lambda row: (-row[1], row[0]))
    gaps = [since for since, families in eras if not families]
    ends = {since: following[0] for (since, _), following in zip(eras, [*eras[1:], (bounds[1], ())], strict=True)}
    return Report(rows, sum(ends[since] - since for since in gaps))


def _changes(span: Span) -> tuple[Change, Change]:
    return (span.begin, span.leaf, span.gpus), (span.end, span.leaf, -span.gpus)


def _eras(begin: datetime, end: datetime, now: datetime) -> Iterator[Era]:
    """The trees of a time, each from when on: as they were saved, and as their windows opened and closed."""
    nodes, saved = 0, list(past_trees.manifests(past_trees.eras(begin, end, now)))
    for number, (since, manifest) in enumerate(saved):
        until = saved[number + 1][0] if number + 1 < len(saved) else end
        tree = parsing.parse_tree(manifest).tree if manifest else None
        for at in (since, *_edges(tree, since, until)):
            nodes += len(tree.nodes) if tree else 0
            if nodes > MOST_NODES:
                raise invalid(
                    "from", f"has more than {MOST_NODES} nodes in the quota trees until to: choose a later from"
                )
            yield periods.milliseconds(at), _families(window_trees.at(tree, at)) if tree else ()


def _edges(tree: Tree | None, since: datetime, until: datetime) -> list[datetime]:
    """When windows open and close within a time, in order."""
    edges: set[datetime] = set()
    openings = windows.each_opening(tree.nodes, since, until) if tree else ()
    for opening in periods.bounded(openings, MOST_NODES, "openings of windows"):
        edges.update(edge for edge in (opening.begin, opening.end) if since < edge < until)
        if len(edges) > MOST_TREES:
            raise invalid(
                "from", f"has more than {MOST_TREES} openings and closings of windows until to: choose a later from"
            )
    return sorted(edges)


def _families(tree: Tree) -> list[Family]:
    return [
        Family(node.path, _min(tree, node), {child.path: _min(tree, child) for child in tree.children[node.path]})
        for node in tree.nodes
        if node.path in tree.children
    ]


def _min(tree: Tree, node: Node) -> int:
    return sum(amount for name, amount in node.min.items() if devices.is_device(name) and name not in tree.without_min)


def _folded(sums: Mapping[Flow, float], visible: Collection[str] | None) -> dict[Flow, float]:
    """The sums, with one unnamed node for all that the reader may not see."""
    if visible is None:
        return {flow: amount for flow, amount in sums.items() if amount}
    folded: dict[Flow, float] = {}
    for flow, amount in sums.items():
        own = ({flow.lender, flow.borrower} - {flow.parent}).intersection(visible)
        if amount and flow.parent in visible and own:
            key = Flow(*(path if path in visible else "" for path in flow))
            folded[key] = folded.get(key, 0.0) + amount
    return folded
