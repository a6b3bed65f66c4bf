"""The pairs of the node check and what follows from their results, for any nodes that are faulty or slow."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoy_runtime.pairing import FAULTY, MOST_ROUNDS, OK, SLOW, UNKNOWN, Result, next_groups, verdicts

PUBLISHED = {"Llama 3": 3.79, "RSC-1": 6.5, "RSC-2": 2.34}
"""Failures per 1,000 node-days."""


def checked(nodes: int, faulty: set[int], slow: frozenset[int] = frozenset()) -> tuple[dict[int, str], int]:
    """The verdicts where a group fails exactly if a faulty node is in it, and the rounds that they took."""
    results: list[Result] = []
    rounds = 0
    while groups := next_groups(nodes, results, rounds):
        assert Counter(node for group in groups for node in group).most_common(1)[0][1] == 1, "one check at a time"
        for group in groups:
            took = 10.0 if slow & set(group) else 1.0
            results.append(Result(group, not faulty & set(group), dict.fromkeys(group, took)))
        rounds += 1
    return verdicts(nodes, results), rounds


def public(nodes: int, faulty: set[int], random: Random) -> set[int]:
    """Those that the public check calls faulty: adjacent pairs, then the fastest with the slowest; who failed both times."""
    failed, order = dict.fromkeys(range(nodes), 0), list(range(nodes))
    times = {node: random.uniform(1, 2) for node in range(nodes)}
    for number in range(2):
        if number:
            ranked = sorted(times, key=lambda node: times[node])
            order = [ranked[i // 2] if i % 2 == 0 else ranked[-1 - i // 2] for i in range(nodes)]
        pairs = [order[i : i + 2] for i in range(0, nodes - 1, 2)]
        if nodes % 2:
            pairs[-1].append(order[-1])
        for pair in pairs:
            for node in pair if faulty & set(pair) else ():
                failed[node] += 1
                times[node] = 3600.0 + random.random()
    return {node for node, count in failed.items() if count == 2}


def exact(verdict: dict[int, str], faulty: set[int]) -> bool:
    return all(word == (FAULTY if node in faulty else OK) for node, word in verdict.items())


@given(st.integers(3, 64), st.data())
def test_one_faulty_node_of_three_or_more_is_found_exactly(nodes, data):
    faulty = {data.draw(st.integers(0, nodes - 1))}
    verdict, rounds = checked(nodes, faulty)
    assert exact(verdict, faulty)
    assert rounds <= (4 if nodes == 3 else 3)


@given(st.integers(1, 40), st.data())
def test_whatever_is_faulty_no_node_is_called_what_it_is_not(nodes, data):
    faulty = data.draw(st.sets(st.integers(0, nodes - 1)))
    verdict, rounds = checked(nodes, faulty)
    assert rounds <= MOST_ROUNDS
    for node, word in verdict.items():
        assert word in ({FAULTY, UNKNOWN} if node in faulty else {OK, UNKNOWN})


@given(st.integers(4, 40), st.data())
def test_one_slow_node_is_told_from_the_one_that_waited_for_it(nodes, data):
    slow = data.draw(st.integers(0, nodes - 1))
    if nodes < 6 and nodes % 2 == 1 and slow >= nodes - 3:
        return  # most of these nodes waited for it: its time is the usual one
    verdict, _ = checked(nodes, set(), frozenset({slow}))
    assert verdict == {node: SLOW if node == slow else OK for node in range(nodes)}


def test_nodes_that_all_work_are_checked_once():
    assert checked(7, set()) == (dict.fromkeys(range(7), OK), 1)


@pytest.mark.parametrize("nodes", [1, 2])
def test_two_nodes_that_fail_together_are_not_told_apart(nodes):
    verdict, _ = checked(nodes, {0})
    assert set(verdict.values()) == {UNKNOWN}


@pytest.mark.parametrize(("nodes", "faults"), [(5, 1), (6, 2), (8, 3), (16, 8)], ids=lambda value: str(value))
def test_it_is_exact_where_the_public_check_is_not(nodes, faults):
    random = Random(1)
    draws = [set(random.sample(range(nodes), faults)) for _ in range(400)]
    ours = sum(exact(checked(nodes, faulty)[0], faulty) for faulty in draws) / len(draws)
    theirs = sum(public(nodes, faulty, random) == faulty for faulty in draws) / len(draws)
    assert ours >= 0.99 > 0.8 > theirs


@pytest.mark.parametrize("rate", PUBLISHED.values(), ids=PUBLISHED)
def test_it_is_exact_at_published_rates_of_failure(rate):
    """Gangs of 3 to 16 nodes in which at least one failed within a week."""
    ours = total = 0
    for seed in range(20):
        random = Random(seed)
        while total < 25 * (seed + 1):
            nodes = random.randint(3, 16)
            faulty = {node for node in range(nodes) if random.random() < rate * 7 / 1000}
            if faulty:
                total += 1
                ours += exact(checked(nodes, faulty)[0], faulty)
    assert ours / total >= 0.99
