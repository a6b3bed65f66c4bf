"""Spot pools on a virtual clock: which nodes are taken back when, by the seed alone and not by what runs there."""

import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass

HOUR, DAY = 3600.0, 86_400.0


@dataclass(frozen=True, slots=True)
class Pool:
    """Nodes that stay for a while and are away for a while, both exponentially distributed; seconds."""

    up_s: float
    down_s: float
    bursts: bool = False
    """Once a day, at a random time, half of the nodes are taken back at once."""
    nodes: int = 32

    @property
    def names(self) -> list[str]:
        return [f"spot-{index:02}" for index in range(self.nodes)]


POOLS = {
    "calm": Pool(24 * HOUR, HOUR),
    "busy": Pool(6 * HOUR, HOUR / 2),
    "bursts": Pool(24 * HOUR, HOUR, bursts=True),
}


@dataclass(frozen=True, slots=True)
class Change:
    """At one moment these nodes are taken back, or are there again."""

    at: float
    gone: tuple[str, ...] = ()
    back: tuple[str, ...] = ()


def draw(pool: Pool, seed: int, until: float) -> Iterator[Change]:
    """The changes in the order of time; all nodes are there at the start."""
    rng, names = random.Random(f"spot pool {seed}"), pool.names
    state = dict.fromkeys(names, 0)
    """Node -> how often it has changed: even, it is there. What was drawn before a burst means nothing after it."""
    drawn = [(rng.expovariate(1 / pool.up_s), name, 0) for name in names]
    if pool.bursts:
        drawn += [(day * DAY + rng.uniform(0, DAY), "", 0) for day in range(int(until / DAY))]
    heapq.heapify(drawn)

    def turn(name: str, at: float) -> None:
        state[name] += 1
        mean = pool.down_s if state[name] % 2 else pool.up_s
        heapq.heappush(drawn, (at + rng.expovariate(1 / mean), name, state[name]))

    while drawn and drawn[0][0] < until:
        at, name, version = heapq.heappop(drawn)
        if not name:
            gone = tuple(each for each in rng.sample(names, pool.nodes // 2) if state[each] % 2 == 0)
            for each in gone:
                turn(each, at)
            yield Change(at, gone=gone)
        elif state[name] == version:
            turn(name, at)
            yield Change(at, gone=(name,)) if version % 2 == 0 else Change(at, back=(name,))
