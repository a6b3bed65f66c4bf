"""A set of gangs that the nodes propose by price, where too many have to be looked at to try the least sets in turn. Pure.

A gang's price is what it takes of what its queue may lose, so that the cheapest of those that make a place are mostly such as
may go together. Where they may not, those in conflict become dearer, and others are proposed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

ROUNDS = 8
"""How often others are asked for. What proposes bounds the work: with its bound used up it proposes none."""
DEARER = 1.5


def find(
    prices: Mapping[int, float],
    propose: Callable[[Mapping[int, float]], Iterable[int]],
    suffices: Callable[[Sequence[int]], bool],
    in_conflict: Callable[[Sequence[int]], Sequence[int]],
) -> list[int] | None:
    """Items that suffice and are without conflict; None when none were met. ``propose`` returns none when it knows none."""
    prices = dict(prices)
    for attempt in range(ROUNDS):
        chosen = sorted(propose({item: price * _varied(attempt, item) for item, price in prices.items()}))
        if not chosen:
            return None
        conflict = in_conflict(chosen)
        if not conflict and suffices(chosen):
            return chosen
        prices |= {item: DEARER * prices[item] for item in conflict}
    return None


def _varied(attempt: int, item: int) -> float:
    """The first attempt goes by the prices alone, each other one by prices up to a half higher."""
    return 1.0 + (item * 2654435761 + attempt * 40503) % 1024 / 2048 if attempt else 1.0
