"""What queues had used of late, at moments of a time, beside what they are entitled to by weight.

Use fades with the half-life that fair shares over time have, and is counted from the same attempts
(`jobs.services.scheduling.demand.use`); weights are those of the tree of now.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings

from fleet.errors import invalid
from jobs.services.lifecycle.accounting import deleted_use
from jobs.services.scheduling.demand import use
from jobs.services.series import periods
from quotas.core.queues import recent_use
from quotas.core.trees.tree import FairShare, Node, Tree

LONGEST = timedelta(days=92)
MOST_ATTEMPTS = 100_000
"""Counted for one answer."""
STEPS = 48
_ASKS_AGAIN = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Share:
    path: str
    """Empty: of all children of the parent that the reader may not see."""
    parent: str
    weight: float
    entitled: float | None
    """Weight by that of all children of the parent; None: they have none."""
    hours: Sequence[float]
    """GPU-hours as they counted at each moment."""
    shares: Sequence[float | None]
    """Hours by those of all children of the parent; None: they had used nothing."""


@dataclass(frozen=True, slots=True)
class Report:
    half_life_s: float
    times: Sequence[float]
    """Seconds since the epoch."""
    deciding: Collection[str]
    """The parents whose children are compared by this."""
    rows: Sequence[Share]


def earliest(now: datetime) -> datetime:
    """The earliest begin, which remains possible while a caller asks again."""
    return (deleted_use.reported_since(now) + _ASKS_AGAIN).replace(microsecond=0)


def read(tree: Tree, begin: datetime, end: datetime, now: datetime, visible: Collection[str] | None) -> Report:
    """``visible`` are the paths that the reader may see, None: all."""
    periods.check(begin, end, LONGEST)
    if begin < deleted_use.reported_since(now):
        raise invalid(
            "from",
            f"is {begin:%FT%TZ}, and use of deleted jobs is not kept so far back: {earliest(now):%FT%TZ} is the earliest",
        )
    until = max(begin, min(end, now))
    first, length = begin.timestamp(), (until - begin).total_seconds()
    times = [first + length * place / STEPS for place in range(STEPS + 1)]
    half_life = settings.CONVOY_CYCLE.share_half_life_s
    stretches = list(periods.bounded(use.stretches(begin, until), MOST_ATTEMPTS, "attempts"))
    by_leaf = recent_use.history(stretches, times, half_life)
    used = _by_path(tree, by_leaf, len(times))
    rows = [row for node in tree.nodes for row in _children(tree, node, used, visible)]
    over_time = [node.path for node in tree.nodes if node.attributes.fair_share is FairShare.OVER_TIME]
    return Report(half_life, times, {path for path in over_time if path in tree.children}, rows)


def _by_path(tree: Tree, by_leaf: Mapping[str, Sequence[float]], count: int) -> dict[str, list[float]]:
    used: dict[str, list[float]] = {node.path: [0.0] * count for node in tree.nodes}
    for leaf in by_leaf.keys() & used.keys():
        for node in tree.to_root(leaf):
            used[node.path] = [
                below + seconds / 3600 for below, seconds in zip(used[node.path], by_leaf[leaf], strict=True)
            ]
    return used


def _children(
    tree: Tree, parent: Node, used: Mapping[str, Sequence[float]], visible: Collection[str] | None
) -> list[Share]:
    """The children of a node that the reader may see, and the others as one."""
    children = tree.children.get(parent.path, ())
    if visible is not None and parent.path not in visible:
        return []
    groups: dict[str, list[Node]] = defaultdict(list)
    for child in children:
        groups[child.path if visible is None or child.path in visible else ""].append(child)
    weights = sum(child.attributes.weight for child in children)
    totals = [sum(of) for of in zip(*(used[child.path] for child in children), strict=True)]
    rows = []
    for path, nodes in groups.items():
        weight = sum(node.attributes.weight for node in nodes)
        hours = [sum(of) for of in zip(*(used[node.path] for node in nodes), strict=True)]
        shares = [amount / total if total else None for amount, total in zip(hours, totals, strict=True)]
        rows.append(Share(path, parent.path, weight, weight / weights if weights else None, hours, shares))
    return rows
