"""What another tree would do to the jobs of now. Jobs are unknown down here: who has them registers how to ask for them."""

from collections.abc import Callable, Sequence
from datetime import datetime

from quotas.core import impact
from quotas.core.impact import Effect, Side
from quotas.core.order import Unit
from quotas.core.reclaim import Running
from quotas.core.tree import Tree

Population = tuple[Sequence[Running], Sequence[Unit]]
Source = Callable[[Tree], Population]
_sources: list[Source] = []


def register_population(source: Source) -> None:
    """``source`` gives what runs and what waits, each with the leaf it would have in the tree."""
    _sources.append(source)


def effect_of_change(before: Tree | None, after: Tree, now: datetime) -> Effect:
    """That every gang finds a cluster is taken for granted: it is the quota that is asked."""
    return impact.compute_effect(_side(before) if before else None, _side(after), now)


def _side(tree: Tree) -> Side:
    found = [source(tree) for source in _sources]
    return Side(
        tree, [each for running, _ in found for each in running], [each for _, waiting in found for each in waiting]
    )
