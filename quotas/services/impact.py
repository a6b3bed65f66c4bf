"""What another tree would do to the jobs of now. Jobs are unknown down here: who has them registers how to ask for them."""

from collections.abc import Callable, Sequence
from datetime import datetime

from quotas.core import impact
from quotas.core.candidates import Running
from quotas.core.impact import Effect, Side
from quotas.core.order import Unit
from quotas.core.tree import Tree

Population = tuple[Sequence[Running], Sequence[Unit]]
Source = Callable[[Tree, datetime], Population]
_sources: list[Source] = []


def register_population(source: Source) -> None:
    """``source`` returns what runs now and what waits, each with the leaf it would have in the tree."""
    _sources.append(source)


def effect_of_change(before: Tree | None, after: Tree, now: datetime) -> Effect:
    """That every gang finds a cluster is taken for granted: it is the quota that is asked."""
    return impact.compute_effect(_side(before, now) if before else None, _side(after, now), now)


def _side(tree: Tree, now: datetime) -> Side:
    found = [source(tree, now) for source in _sources]
    return Side(
        tree, [each for running, _ in found for each in running], [each for _, waiting in found for each in waiting]
    )
