"""A set of gangs that suffices and may go together, where the ones that come first stand in each other's way. Pure.

Some gangs may go only one without the other: what a queue is above its min by is taken by whichever goes first. So choosing in
order may end with the wrong ones. Here the least sets that suffice are looked at, those of the first gangs first. If one may
not go as a whole, each set that does contains not all of it, so that it is tried again without each of those in conflict
(Reiter's hitting sets). What suffices, and what may go together, is for the caller to say.
"""

from collections import deque
from collections.abc import Callable, Sequence

WORK = 2**11
"""How many gangs are removed at most, in all the sets that are asked about: each takes some 0.1 ms."""


class Spent(Exception):
    """No more sets are asked about, although there may be one."""


def find_compatible(
    items: Sequence[int],
    suffices: Callable[[Sequence[int]], bool],
    in_conflict: Callable[[Sequence[int]], Sequence[int]],
    work: int = WORK,
) -> list[int] | None:
    """A least set of the items that suffices and is without conflict; None when there is none. Raises `Spent`.

    ``suffices`` must hold for each set that contains one for which it holds. ``in_conflict`` returns items of a set not all of
    which can go together; it is empty for each part of a set for which it is empty.
    """
    left = work

    def ask(chosen: Sequence[int]) -> bool:
        nonlocal left
        left -= len(chosen)
        if left < 0:
            raise Spent
        return suffices(chosen)

    seen: set[frozenset[int]] = {frozenset()}
    without = deque(seen)
    while without:
        left_out = without.popleft()
        least = _least([item for item in items if item not in left_out], ask)
        if least is None:
            continue
        conflict = in_conflict(least)
        if not conflict:
            return least
        fewer = [left_out | {item} for item in conflict]
        without += [each for each in fewer if each not in seen]
        seen.update(fewer)
    return None


def _least(items: Sequence[int], suffices: Callable[[Sequence[int]], bool]) -> list[int] | None:
    """A set of which no part suffices, of the first items as far as possible; None when not even all of them do."""
    if not suffices(items):
        return None
    needed: list[int] = []
    while not suffices(needed):
        low, high = 1, len(items)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if suffices([*needed, *items[:middle]]) else (middle + 1, high)
        needed.append(items[low - 1])
        items = items[: low - 1]
    return needed
