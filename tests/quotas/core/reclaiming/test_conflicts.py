"""Which of several sets that suffice may go together."""

from itertools import chain, combinations
from random import Random

import pytest

from quotas.core.reclaiming.conflicts import Spent, find_compatible


def test_it_takes_the_first_that_suffice_where_nothing_is_in_conflict():
    assert find_compatible([1, 2, 3, 4], lambda chosen: sum(chosen) >= 4, lambda _: []) == [3, 1]
    assert find_compatible([1, 2], lambda chosen: sum(chosen) >= 4, lambda _: []) is None
    assert find_compatible([], lambda _: True, lambda _: []) == []


def test_it_looks_for_others_where_the_first_may_not_go_together():
    def in_conflict(chosen):
        return chosen if {2, 3} <= set(chosen) else []

    assert find_compatible([1, 2, 3, 4], lambda chosen: sum(chosen) >= 5, in_conflict) == [4, 1]


def test_it_gives_up_after_so_much_work():
    asked = []

    def suffices(chosen):
        asked.append(len(chosen))
        return len(chosen) >= 10

    with pytest.raises(Spent):
        find_compatible(list(range(20)), suffices, list, work=200)
    assert 150 < sum(asked) <= 200


def test_it_meets_a_set_wherever_there_is_one():
    """By trying every set: goals are sets that each suffice, and pairs exclude each other."""
    rng, met = Random(5), 0
    for _ in range(200):
        items = list(range(rng.randint(1, 7)))
        goals = [set(rng.sample(items, rng.randint(1, min(3, len(items))))) for _ in range(rng.randint(1, 4))]
        pairs = [set(rng.sample(items, 2)) for _ in range(rng.randint(0, 6))] if len(items) > 1 else []

        def suffices(chosen, goals=goals):
            return any(goal <= set(chosen) for goal in goals)

        def in_conflict(chosen, pairs=pairs):
            return sorted(next((pair for pair in pairs if pair <= set(chosen)), ()))

        every = chain.from_iterable(combinations(items, n) for n in range(len(items) + 1))
        possible = any(suffices(each) and not in_conflict(each) for each in every)
        chosen = find_compatible(items, suffices, in_conflict)
        assert (chosen is not None) == possible
        if chosen is not None:
            met += 1
            assert suffices(chosen) and not in_conflict(chosen)
            assert not any(suffices([each for each in chosen if each != one]) for one in chosen)
    assert met > 50
