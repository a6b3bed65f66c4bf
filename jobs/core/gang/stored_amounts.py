"""Checks amounts as the database has them: a restored or edited row may hold anything, and is no reason to stop. Pure."""

from collections.abc import Mapping
from typing import Any

Amounts = Mapping[str, int]
LARGEST = 2**60
"""Of one amount, in whole units: sums of a few stay within what is counted."""


class Unreadable(ValueError):
    """The value is not what is stored there; the text says what it is instead."""


def amounts(value: Any) -> Amounts:
    if not isinstance(value, Mapping):
        raise Unreadable(f"{_shown(value)} instead of amounts by resource")
    for name, amount in value.items():
        if not isinstance(amount, int) or isinstance(amount, bool) or not 0 <= amount <= LARGEST:
            raise Unreadable(f"{_shown(amount)} as the amount of {_shown(name)}")
    return value


def on_nodes(value: Any) -> tuple[tuple[Amounts, tuple[str, ...]], ...]:
    """``[[amounts, [names]]]`` of a hold."""
    if not isinstance(value, list):
        raise Unreadable(f"{_shown(value)} instead of a list of nodes")
    return tuple(_share(entry) for entry in value)


def _share(entry: Any) -> tuple[Amounts, tuple[str, ...]]:
    match entry:
        case [part, [*names]] if all(isinstance(name, str) for name in names):
            return amounts(part), tuple(names)
    raise Unreadable(f"{_shown(entry)} instead of amounts and names of nodes")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
