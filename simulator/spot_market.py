"""The spot market of a pool: when each of its nodes is taken back and when it is there again. Pure; the same for the same seed.

A node is there for a while and away for a while, each of them exponentially distributed, and notice is given before it goes.
A burst takes a share of the pool at once. Times are simulated seconds since the simulator started, when all nodes are there.
"""

import heapq
import itertools
import random
from collections.abc import Iterator

from simulator.fault_parser import Fault, Step
from simulator.node.nodes import Pool, node_names

_RECLAIM, _RETURN, _BURST = range(3)
_DAY_S = 86_400.0


def steps(member: str, pool: Pool) -> Iterator[Step]:
    """The faults of the pool's nodes, in order of time, without end. Nothing for a pool that is not on the spot market."""
    if pool.spot is None:
        return
    market = _Market(member, pool)
    while True:
        yield from market.next_steps()


class _Market:
    def __init__(self, member: str, pool: Pool) -> None:
        assert pool.spot is not None  # noqa: S101
        self._member, self._spot, self._names = member, pool.spot, node_names(member, pool)
        # Of a node each, so that another number of nodes changes nothing of the others.
        self._rng = {name: random.Random(f"{self._spot.seed}/{name}") for name in self._names}  # noqa: S311
        self._bursts = random.Random(f"{self._spot.seed}/bursts")  # noqa: S311
        self._away: set[str] = set()
        self._numbers = itertools.count()
        self._due: list[tuple[float, int, int, str, int]] = []
        self._lives = dict.fromkeys(self._names, 0)
        """How often each node went: what was planned for an earlier life is void."""
        for name in self._names:
            self._plan_reclaim(name, 0.0)
        self._plan_burst(0.0)

    def next_steps(self) -> Iterator[Step]:
        at, _, what, name, life = heapq.heappop(self._due)
        if what == _BURST:
            yield from self._burst(at)
        elif life != self._lives[name]:
            return
        elif what == _RECLAIM:
            yield self._reclaim(name, at, self._spot.notice_s)
        else:
            self._away.discard(name)
            self._plan_reclaim(name, at)
            yield Step(at, self._member, Fault("node-up", target=name))

    def _burst(self, at: float) -> Iterator[Step]:
        hit = self._bursts.sample(self._names, round(self._spot.share * len(self._names)))
        self._plan_burst(at)
        for name in sorted(hit):
            if name not in self._away:
                yield self._reclaim(name, at, self._spot.notice_s)

    def _reclaim(self, name: str, at: float, notice_s: float) -> Step:
        self._away.add(name)
        self._lives[name] += 1
        down_s = self._rng[name].expovariate(1 / self._spot.mean_down_s)
        self._plan(at + notice_s + down_s, _RETURN, name)
        return Step(at, self._member, Fault("reclaim", notice_s, name))

    def _plan_reclaim(self, name: str, since: float) -> None:
        """The notice comes before the end of its time up, or at its beginning if that is shorter."""
        up_s = self._rng[name].expovariate(1 / self._spot.mean_up_s)
        self._plan(since + max(up_s - self._spot.notice_s, 0.0), _RECLAIM, name)

    def _plan_burst(self, since: float) -> None:
        if self._spot.bursts_per_day:
            self._plan(since + self._bursts.expovariate(self._spot.bursts_per_day / _DAY_S), _BURST, "")

    def _plan(self, at: float, what: int, name: str) -> None:
        heapq.heappush(self._due, (at, next(self._numbers), what, name, self._lives.get(name, 0)))
