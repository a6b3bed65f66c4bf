"""The sizes that an elastic job gets by itself: it starts with what there is, and grows in few large steps with rests between
them, because each is a restart. Pure.
"""

from datetime import datetime, timedelta

COOL_DOWN = 5
"""An elastic job runs at least so many times its restart cost at a size before it gets more, but for all that it asks for."""
HOLDS_UP_FOR = timedelta(hours=1)
"""A growth that was asked for, and of which something is missing still, keeps what becomes free from others for so long."""
LEAST_RESTART = timedelta(seconds=12)
MOST_SIZES = 32
_STEP = timedelta(minutes=1)
"""Clocks of two processes that differ by less were not set."""
_SAME = timedelta(milliseconds=2)
"""Changes of size are kept in milliseconds."""


def steps(size: int, most: int) -> list[int]:
    """The sizes to try, the largest first: the most, then half as many pods more each time, at last one."""
    tried, more = [], most - size
    while more > 0:
        tried.append(size + more)
        more //= 2
    return tried


def start_sizes(least: int, size: int) -> range:
    """The sizes below its own that a waiting job may start with, the smallest first: at most about `MOST_SIZES`."""
    return range(least, size, max((size - least) // MOST_SIZES, 1))


def restart_cost(placed_at: datetime, started_at: datetime | None) -> timedelta:
    """How long its pods take to run again, measured by its own start."""
    measured = started_at - placed_at if started_at else timedelta()
    return max(measured, LEAST_RESTART)


def grows_from(changed_at: datetime, restart_cost: timedelta, size: int, wanted: int) -> datetime:
    """When a job that got its size at that time may get more by itself.

    All its pods restart for those that are added. So it has to have run for as long as these take to make up for that: what
    did not last so long would not pay.
    """
    return changed_at + max(COOL_DOWN, size / (wanted - size)) * restart_cost


def holds_up(asked_at: datetime, now: datetime) -> bool:
    """Whether a growth that was asked for comes before others still. One from before the clock was set back does not."""
    return -_STEP <= now - asked_at < HOLDS_UP_FOR


def restarts_anyway(asked_at: datetime, changed_at: datetime, restart_cost: timedelta, now: datetime) -> bool:
    """Whether it became smaller when it asked for its former size, a moment ago: more pods cost no restart of their own.

    Once: after a growth its last change is another one.
    """
    return abs(changed_at - asked_at) < _SAME and now < asked_at + restart_cost
