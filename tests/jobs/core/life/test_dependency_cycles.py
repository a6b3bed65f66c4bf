"""Cycles among jobs that wait for one another are found as by hand, and in chains of ten thousand at once."""

from itertools import permutations
from random import Random

from jobs.core.life.dependencies import Edge, On, Predecessor, find_cycle


def edge(job: int, of: int, kind: str = "") -> Edge:
    return Edge(job, f"j{job}", "Job", Predecessor(f"j{of}", On.OK, kind))


def test_a_chain_of_ten_thousand_has_none_and_its_end_closes_one():
    """Looked through from each job anew it would be fifty million steps."""
    chain = [edge(job, job - 1) for job in range(1, 10_000)]
    assert find_cycle(chain, range(10_000)) == []
    assert len(find_cycle([*chain, edge(0, 9_999)], [0])) == 10_001


def test_it_finds_one_wherever_there_is_one_of_these_jobs():
    for seed in range(200):
        rng = Random(seed)
        pairs = {(rng.randrange(5), rng.randrange(5)) for _ in range(rng.randint(1, 7))}
        jobs = rng.sample(range(5), 2)
        ways = (way for length in range(1, 6) for way in permutations(range(5), length))
        closed = [way for way in ways if all(pair in pairs for pair in zip(way, (*way[1:], way[0]), strict=True))]
        cycle = find_cycle([edge(*pair) for pair in sorted(pairs)], jobs)
        assert bool(cycle) == any(not set(way).isdisjoint(jobs) for way in closed), seed
        if cycle:
            path = tuple(int(name[1:]) for name in cycle)
            assert path[:-1] in closed and path[0] == path[-1] and path[0] in jobs, seed


def test_of_another_kind_is_another_job():
    assert find_cycle([edge(0, 1, "RayJob"), edge(1, 0)], [0, 1]) == []
