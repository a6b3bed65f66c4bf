"""Whether members fail each for itself, or for one cause that is more likely ours: our network, our DNS, our CA bundle.

As Kubernetes' node controller stops evictions in a full disruption: when too many members stop answering within one window,
none of them is judged dead and no job is moved. Counted are the members that answered before; one that has been failing since
long before is no evidence either way. Pure: everything it needs is in the rows, so that a restart and a second worker agree.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

_FEW = 4
"""Fleets with fewer members are disrupted only when all members fail: one of two is no majority to speak of."""


@dataclass(frozen=True, slots=True)
class Limits:
    share: float = 0.5
    """More than this share of the members at once is a disruption."""
    window: timedelta = timedelta(minutes=5)
    """How far apart failures may have begun and still be taken for one."""


@dataclass(frozen=True, slots=True)
class Disruption:
    failing: int
    members: int
    """Those failing, and those that were well before."""


def find(failing: Mapping[str, datetime], members: int, limits: Limits) -> dict[str, Disruption]:
    """The members, by name, that fail as part of a disruption. ``failing`` says since when; ``members`` is the fleet's size."""
    starts = sorted(failing.values())
    signals = {}
    for name, since in failing.items():
        first = bisect_left(starts, since - limits.window)
        count = bisect_right(starts, since + limits.window) - first
        before = members - first
        if _is_disruption(count, before, limits):
            signals[name] = Disruption(count, before)
    return signals


def _is_disruption(count: int, members: int, limits: Limits) -> bool:
    if members < 2:
        return False
    return count == members or (members >= _FEW and count > members * limits.share)
