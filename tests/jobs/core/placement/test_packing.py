"""Packing pods of several shapes: against brute force over every way, and the traps that greedy orders fall into."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.core.placement.nodes import packing
from jobs.core.placement.nodes.packing import Bin, Problem, Unsure, Use, pack
from tests.support.examples import examples


def bins(*frees: tuple[int, ...], shapes: int, zones: tuple = ()) -> tuple[Bin, ...]:
    return tuple(Bin(1, f, (True,) * shapes, zones[i] if zones else ()) for i, f in enumerate(frees))


def brute(problem: Problem) -> bool:
    """Every pod on every node."""
    nodes = [i for i, b in enumerate(problem.bins) for _ in range(b.size)]
    pods = [shape for shape, n in enumerate(problem.needs) for _ in range(n)]
    return any(legal(problem, nodes, pods, places) for places in product(range(len(nodes)), repeat=len(pods)))


def legal(problem: Problem, nodes: list[int], pods: list[int], places: tuple[int, ...]) -> bool:
    for node, origin in enumerate(nodes):
        here = [pod for pod, place in zip(pods, places, strict=True) if place == node]
        found = problem.bins[origin]
        if not all(found.admits[pod] for pod in here) or clash(here, problem.apart):
            return False
        for r, free in enumerate(found.free):
            asks = [problem.asked[pod][r] for pod in here]
            if any(asks) and sum(asks) > free:
                return False
    for rule, pairs in enumerate(problem.zoned):
        for zone in {problem.bins[o].zones[rule] for o in nodes} - {None}:
            inside = [pod for pod, p in zip(pods, places, strict=True) if problem.bins[nodes[p]].zones[rule] == zone]
            if clash(inside, pairs):
                return False
    return True


def clash(here: list[int], pairs: frozenset[tuple[int, int]]) -> bool:
    return any((min(a, b), max(a, b)) in pairs for i, a in enumerate(here) for b in here[:i])


def holds(problem: Problem, uses: list[Use]) -> bool:
    nodes = [use.bin for use in uses for _ in range(use.nodes)]
    pods, places, at = [], [], 0
    for use in uses:
        for _ in range(use.nodes):
            for shape, n in enumerate(use.pods):
                pods += [shape] * n
                places += [at] * n
            at += 1
    enough = all(nodes.count(i) <= b.size for i, b in enumerate(problem.bins))
    whole = all(pods.count(shape) == n for shape, n in enumerate(problem.needs))
    return enough and whole and legal(problem, nodes, pods, tuple(places))


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    shapes = draw(st.integers(1, 3))
    needs = tuple(draw(st.integers(1, 3 if shapes < 3 else 2)) for _ in range(shapes))
    asked = tuple((draw(st.integers(0, 4)), draw(st.integers(1, 3))) for _ in range(shapes))
    options = [(i, j) for i in range(shapes) for j in range(i, shapes)]
    pairs = st.tuples(st.sampled_from([None, *options]), st.sampled_from([None, *options])).map(
        lambda two: frozenset(two) - {None}
    )
    zoned = (draw(pairs),) if draw(st.booleans()) else ()
    node = st.builds(
        Bin,
        st.integers(1, 2),
        st.tuples(st.integers(-1, 8), st.integers(0, 5)),
        st.tuples(*[st.sampled_from([True, True, False])] * shapes),
        st.tuples(*[st.sampled_from(["a", "b", None])] * len(zoned)),
    )
    return Problem(needs, asked, tuple(draw(st.lists(node, min_size=1, max_size=3))), draw(pairs), zoned)


@settings(max_examples=examples(400), deadline=None)
@given(problems())
def test_it_finds_a_way_exactly_when_there_is_one(problem: Problem) -> None:
    found = pack(problem)
    assert (found is not None) == brute(problem)
    assert found is None or holds(problem, found)


@settings(max_examples=examples(50), deadline=None)
@given(problems())
def test_it_finds_the_same_way_twice(problem: Problem) -> None:
    assert pack(problem) == pack(problem)


def test_it_finds_the_way_no_decreasing_order_finds() -> None:
    problem = Problem((2, 4), ((5,), (3,)), bins((11,), (11,), shapes=2))
    assert holds(problem, pack(problem) or [])
    tricky = Problem((1, 1, 2, 2), ((7,), (6,), (4,), (3,)), bins((13,), (14,), shapes=4))
    assert holds(tricky, pack(tricky) or [])


def test_it_says_when_it_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "EFFORT", 3)
    with pytest.raises(Unsure):
        pack(Problem((2, 3), ((5,), (3,)), bins((9,), (9,), shapes=2)))


def test_a_big_gang_with_a_master_is_searched_within_the_effort() -> None:
    problem = Problem((1, 2000), ((3, 0), (0, 8)), (Bin(1999, (2, 8), (True, True)), Bin(1, (3, 8), (True, True))))
    assert holds(problem, pack(problem) or [])
