"""What another tree would do to the jobs of now. Jobs are unknown down here: who has them registers how to ask for them."""

from collections.abc import Callable, Sequence
from datetime import datetime

from quotas.core import impact
from quotas.core.impact import Effect, Side
from quotas.core.queues.order import Unit
from quotas.core.reclaiming.candidates import Running
from quotas.core.trees.tree import Tree
from quotas.services import usage

Population = tuple[Sequence[Running], Sequence[Unit]]
Demand = Callable[[Tree], Population]
"""What runs now and what waits, each with the leaf it would have in the tree."""
Source = Callable[[datetime], Demand]
_sources: list[Source] = []


def register_population(source: Source) -> None:
    """``source`` reads the jobs of now, once for all trees that are compared."""
    _sources.append(source)


def effect_of_change(before: Tree | None, after: Tree, now: datetime) -> Effect:
    """That every gang finds a cluster is taken for granted: it is the quota that is asked."""
    demands = [source(now) for source in _sources]
    return impact.compute_effect(_side(before, demands, now) if before else None, _side(after, demands, now), now)


def _side(tree: Tree, demands: Sequence[Demand], now: datetime) -> Side:
    populations = [demand(tree) for demand in demands]
    return Side(
        tree,
        [job for running, _ in populations for job in running],
        [unit for _, waiting in populations for unit in waiting],
        [account for account in usage.budgets(tree, now).values() if account.is_spent],
    )
