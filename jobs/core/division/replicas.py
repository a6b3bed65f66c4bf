"""How many pods each cluster gets of a job that may be divided: Karmada's rules, on counts alone.

Knows rooms, weights and groups of clusters, nothing of nodes, quotas or how room is found. Equal questions get equal answers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from heapq import heapify, heapreplace

from jobs.core.division.spread import Option, Spread, choose


class Preference(StrEnum):
    AGGREGATED = "Aggregated"
    """As few clusters as hold it."""
    BY_ROOM = "AvailableReplicas"
    """All clusters, in proportion to their room."""
    BY_WEIGHT = "StaticWeight"
    """In proportion to given weights, whatever is free."""


@dataclass(frozen=True, slots=True)
class Strategy:
    preference: Preference = Preference.AGGREGATED
    spreads: tuple[Spread, ...] = ()


@dataclass(frozen=True, slots=True)
class Division:
    """What is to be divided of a job, and what of it stands already."""

    replicas: int
    """Pods that have no place."""
    completions: int
    """What they are to complete."""
    standing: tuple[str, ...] = ()
    """Clusters that have a share already, and get no other."""
    fresh: bool = True
    """Nothing of it stands; else what is divided is what was lost of it."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A cluster in question; ``tier`` is which of the overflow tiers lets it in, ``weight`` is the static one."""

    name: str
    room: int
    places: Mapping[str, str] = field(default_factory=dict)
    weight: int = 1
    tier: int = 0


def divide(
    replicas: int, choices: Sequence[Choice], strategy: Strategy, standing: Sequence[Choice] = ()
) -> dict[str, int]:
    """Pods by cluster, every one at least 1 and none above its room; nothing when they cannot all be placed so."""
    filled: dict[str, int] = {}
    for tier in sorted({each.tier for each in choices}):
        here = [each for each in choices if each.tier == tier and each.room > 0]
        before = [*standing, *(each for each in choices if each.name in filled)]
        division = _within(replicas - sum(filled.values()), here, strategy, before)
        if division:
            return {**filled, **division}
        filled.update({each.name: each.room for each in here})
        if sum(filled.values()) >= replicas:
            break
    return {}


def _within(replicas: int, choices: Sequence[Choice], strategy: Strategy, standing: Sequence[Choice]) -> dict[str, int]:
    if replicas <= 0 or not choices:
        return {}
    if strategy.preference is Preference.BY_WEIGHT:
        return _by_weight(replicas, choices)
    few = strategy.preference is Preference.AGGREGATED
    options = [Option(each.name, each.room, each.places) for each in choices]
    sizes = [Option(each.name, 0, each.places) for each in standing]
    chosen, sure = choose(options, replicas, strategy.spreads, sizes, few=few)
    rooms = {each.name: each.room for each in choices}
    shares = webster(replicas, {name: rooms[name] for name in chosen}, dict.fromkeys(sure, 1))
    return {name: share for name, share in sorted(shares.items()) if share}


def _by_weight(replicas: int, choices: Sequence[Choice]) -> dict[str, int]:
    weights = {each.name: each.weight for each in choices if each.weight > 0}
    shares = webster(replicas, weights or {each.name: 1 for each in choices})
    if any(shares.get(each.name, 0) > each.room for each in choices):
        return {}
    return {name: share for name, share in sorted(shares.items()) if share}


def webster(seats: int, votes: Mapping[str, int], taken: Mapping[str, int] | None = None) -> dict[str, int]:
    """Webster's (Sainte-Lague's) method: each seat to the highest votes / (2 x seats + 1), equal ones by name.

    ``taken`` are seats that are taken beforehand, out of the same number.
    """
    shares = {name: (taken or {}).get(name, 0) for name in votes}
    turns = [(Fraction(-votes[name], 2 * share + 1), name) for name, share in shares.items()]
    heapify(turns)
    for _ in range(seats - sum(shares.values()) if turns else 0):
        _, name = turns[0]
        shares[name] += 1
        heapreplace(turns, (Fraction(-votes[name], 2 * shares[name] + 1), name))
    return shares
