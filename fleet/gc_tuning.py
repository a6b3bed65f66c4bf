"""Keeps the interpreter from stopping those who are in a hurry.

Time and again the garbage collector would look at what is there for good: in a process that has loaded all of Django this
takes 100 to 250 ms, during which none of its threads moves. And a thread back from the database or the network waits 5 ms for
one that computes, after each single query.
"""

import gc
import sys

YOUNG = 10_000
"""Containers made and still there before the youngest are looked at: most that a request or a cycle makes is gone by then."""

TURN_S = 0.0005
"""After which a thread that computes lets another one go on."""


def shorten() -> None:
    """For a process that runs for long, once it has loaded what it is made of."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, 10, 10)
    sys.setswitchinterval(TURN_S)
