"""Drain reservation: what is kept, who may use it meanwhile, and that a big gang with a drain is never delayed."""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from jobs.core import drain
from jobs.core.drain import Drain, Guesses, Waiting

GPUS = 4


@dataclass
class Toy:
    """Clusters of nodes with 4 GPUs each, fitted from the first node on; run times are known."""

    now: float = 0.0
    free: dict[str, dict[str, int]] = field(default_factory=dict)
    kept: frozenset[tuple[str, str]] = frozenset()
    running: list[tuple[float, int, str, dict[str, int]]] = field(default_factory=list)
    promised: dict[object, float] = field(default_factory=dict)

    def place(self, job: Waiting) -> bool:
        for cluster, nodes in self.free.items():
            gpus, taken = int(str(job.shape)), dict[str, int]()
            for node, free in nodes.items():
                if (cluster, node) not in self.kept and free >= (want := min(gpus, GPUS)) > 0:
                    taken[node], gpus = want, gpus - want
            if not gpus:
                for node, amount in taken.items():
                    nodes[node] -= amount
                heapq.heappush(self.running, (self.now + job.lasts, int(str(job.name)), cluster, taken))
                return True
        return False

    def whole_at(self) -> Mapping[str, Mapping[str, float]]:
        at = {cluster: dict.fromkeys(nodes, self.now) for cluster, nodes in self.free.items()}
        for end, _, cluster, taken in self.running:
            at[cluster] |= {node: max(at[cluster][node], end) for node in taken}
        return at

    def keep(self, drain: Drain) -> None:
        self.kept = frozenset((drain.cluster, node) for node in drain.nodes)
        self.promised.setdefault(drain.gang, drain.starts)

    def unkeep(self) -> None:
        self.kept = frozenset()

    def leave(self) -> None:
        while self.running and self.running[0][0] <= self.now:
            _, _, cluster, taken = heapq.heappop(self.running)
            for node, amount in taken.items():
                self.free[cluster][node] += amount


def job(name: object, gpus: int, lasts: float) -> Waiting:
    return Waiting(name, gpus, -(-gpus // GPUS), lasts)


def replay(arrivals: list[tuple[int, int, int]], nodes: list[int]) -> tuple[Toy, dict[object, float]]:
    """When each job of (time, GPUs, run time) starts."""
    toy = Toy(free={f"c{c}": {f"n{n}": GPUS for n in range(count)} for c, count in enumerate(nodes)})
    coming = sorted(
        ((float(at), job(i, gpus, lasts)) for i, (at, gpus, lasts) in enumerate(arrivals)), key=lambda a: a[0]
    )
    queue: list[Waiting] = []
    starts: dict[object, float] = {}
    while coming or toy.running:
        toy.now = min([at for at, _ in coming[:1]] + [end for end, *_ in toy.running[:1]])
        toy.leave()
        while coming and coming[0][0] <= toy.now:
            queue.append(coming.pop(0)[1])
        for name in drain.turn(queue, toy, toy.now, big=2):
            starts[name] = toy.now
        queue = [j for j in queue if j.name not in starts]
    return toy, starts


traffic = st.lists(st.tuples(st.integers(0, 20), st.sampled_from([1, 2, 4, 8, 12]), st.integers(1, 12)), max_size=25)


@given(traffic, st.lists(st.integers(1, 4), min_size=1, max_size=3))
def test_it_never_delays_a_gang_it_drains_for_when_run_times_are_known(
    arrivals: list[tuple[int, int, int]], nodes: list[int]
) -> None:
    toy, starts = replay(arrivals, nodes)
    assert all(starts[name] <= at for name, at in toy.promised.items())


@given(traffic, st.lists(st.integers(1, 4), min_size=1, max_size=3))
def test_it_starts_every_gang_that_some_cluster_holds_empty(
    arrivals: list[tuple[int, int, int]], nodes: list[int]
) -> None:
    _, starts = replay(arrivals, nodes)
    fitting = {i for i, (_, gpus, _) in enumerate(arrivals) if -(-gpus // GPUS) <= max(nodes)}
    assert starts.keys() == fitting


def test_it_lets_only_those_onto_kept_nodes_who_are_gone_in_time() -> None:
    _, starts = replay([(0, 4, 10), (1, 8, 5), (2, 2, 8), (2, 2, 9)], nodes=[2])
    assert starts == {0: 0, 1: 10, 2: 2, 3: 15}


def test_it_keeps_nodes_where_enough_are_whole_first() -> None:
    at = {"a": {"a0": 3.0, "a1": 9.0}, "b": {"b0": 5.0, "b1": 7.0, "b2": 1.0}, "c": {"c0": 0.0}}
    assert drain.plan(job("g", 8, 1), at) == Drain("g", "b", ("b2", "b0"), 5.0)
    assert drain.plan(job("g", 16, 1), at) is None


def test_it_guesses_a_run_by_the_last_one_alike() -> None:
    guesses = Guesses()
    assert guesses.of("ann", 8) == drain.UNKNOWN
    guesses.learn("ann", 8, 50.0)
    guesses.learn("ann", 16, 70.0)
    assert (guesses.of("ann", 8), guesses.of("ann", 1), guesses.of("bob", 8)) == (50.0, 70.0, drain.UNKNOWN)


def test_it_expects_an_overdue_run_to_go_on_by_half_of_what_it_ran() -> None:
    assert drain.ends(100.0, 50.0, now=120.0) == 150.0
    assert drain.ends(100.0, 50.0, now=200.0) == 250.0 + drain.OVERDUE
