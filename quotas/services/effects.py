"""Who would gain, wait or be reclaimed under another tree. Jobs are unknown down here: who has them registers how to ask.

It compares two passes, under the tree of now and under the other: what runs stays charged, what waits is admitted in order,
and whoever is promised more than it finds takes back what others borrow. That every gang finds a cluster is taken for granted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from quotas.core import reclaim, turns
from quotas.core.admission import Refused
from quotas.core.ledger import Ledger
from quotas.core.order import Unit
from quotas.core.reclaim import Running
from quotas.core.tree import Tree

Population = tuple[Sequence[Running], Sequence[Unit]]
Source = Callable[[Tree], Population]
_sources: list[Source] = []
_CLAIMANTS = 50
"""How many of the entitled are asked whom they would take from: the first in order; a preview has to answer at once."""


@dataclass(frozen=True, slots=True)
class Line:
    """One job, by its key, and what would become of it."""

    job: str
    leaf: str
    message: str


@dataclass(frozen=True, slots=True)
class Effect:
    gains: tuple[Line, ...] = ()
    """Would start, and do not under the tree of now."""
    waits: tuple[Line, ...] = ()
    """Would start now, and no longer."""
    reclaimed: tuple[Line, ...] = ()
    """Run, and would be taken back for others."""


NOTHING = Effect()


def register_population(source: Source) -> None:
    """``source`` gives what runs and what waits, each with the leaf it would have in the tree."""
    _sources.append(source)


@dataclass(frozen=True, slots=True)
class _Pass:
    starts: dict[str, Unit]
    waits: dict[str, str]
    victims: dict[str, Line]


def of(before: Tree | None, after: Tree) -> Effect:
    new = _pass(after)
    old = _pass(before) if before else _Pass(new.starts, {}, {})
    return Effect(
        gains=tuple(_line(each, "would start") for key, each in new.starts.items() if key not in old.starts),
        waits=tuple(_line(each, new.waits[key]) for key, each in old.starts.items() if key in new.waits),
        reclaimed=tuple(each for key, each in new.victims.items() if key not in old.victims),
    )


def _pass(tree: Tree) -> _Pass:
    leaves = {leaf.path for leaf in tree.leaves}
    populations = [source(tree) for source in _sources]
    running = [each for found in populations for each in found[0] if each.leaf in leaves]
    waiting = [each for found in populations for each in found[1] if each.leaf in leaves]
    ledger = Ledger.of(tree, [each.charge for each in running])
    plan = turns.plan(ledger, waiting)
    waits = {unit.id: answer.message for unit, answer in plan.waits}
    entitled = [unit for unit, answer in plan.waits if isinstance(answer, Refused) and answer.entitled]
    return _Pass({each.id: each for each in plan.admitted}, waits, _victims(ledger, running, entitled[:_CLAIMANTS]))


def _victims(ledger: Ledger, running: Sequence[Running], entitled: Sequence[Unit]) -> dict[str, Line]:
    """One claimant after the other, each finding what those before it left."""
    left, found = {each.key: each for each in running}, {}
    for unit in entitled:
        plan = reclaim.plan(ledger, unit, left.values(), lambda gone: True)
        for victim in plan.victims if plan else ():
            taken = left.pop(victim.key)
            ledger.release(taken.charge)
            found[victim.key] = Line(victim.key, taken.leaf, f"{victim.message}: makes room for {unit.id}")
        if plan:
            ledger.charge(unit.charge)
    return found


def _line(unit: Unit, message: str) -> Line:
    return Line(unit.id, unit.leaf, message)
