"""Which of those that are proposed by price may go together."""

from quotas.core.reclaiming.proposals import ROUNDS, find


def cheapest(ways):
    return lambda prices: min(ways, key=lambda way: sum(prices[each] for each in way), default=())


def test_it_takes_the_cheapest_that_suffice():
    assert find({1: 0.1, 2: 0.9, 3: 0.3}, cheapest([(2,), (3, 1)]), lambda _: True, lambda _: []) == [1, 3]


def test_what_may_not_go_together_becomes_dearer_until_others_are_proposed():
    def in_conflict(chosen):
        return [1, 2] if {1, 2} <= set(chosen) else []

    assert find({1: 0.1, 2: 0.1, 3: 0.4}, cheapest([(1, 2), (3,)]), lambda _: True, in_conflict) == [3]


def test_it_ends_where_nothing_is_proposed_or_nothing_may_go():
    asked = []
    assert find({1: 1.0}, cheapest([]), lambda _: True, lambda _: []) is None
    assert find({1: 1.0}, lambda prices: asked.append(prices) or [1], lambda _: True, list) is None
    assert len(asked) == ROUNDS
