"""The cheapest gangs that cover a need: exact against every choice there is, and never empty where all together suffice."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quotas.core.reclaiming import covering
from tests.support.examples import examples

GIB = 2**30
LOTS = settings(max_examples=examples(200), deadline=None)


def cheapest(sizes, need, costs=None):
    costs = [1.0] * len(sizes) if costs is None else costs
    return covering.cheapest(np.array(sizes, dtype=np.int64), np.array(costs, dtype=np.float64), need)


def least(sizes, need, costs):
    """The least cost of any choice that covers the need; None when there is none."""
    choices = (choice for n in range(len(sizes) + 1) for choice in combinations(range(len(sizes)), n))
    covers = [sum(costs[i] for i in choice) for choice in choices if sum(sizes[i] for i in choice) >= need]
    return min(covers, default=None)


@pytest.mark.parametrize(
    ("sizes", "need"),
    [([10 * GIB] * 3, 30 * GIB), ([4000, 2000], 6000), ([10 * GIB + 1, 10 * GIB - 1, 10 * GIB], 30 * GIB), ([7, 0], 7)],
)
def test_it_takes_all_where_the_need_is_just_their_sum(sizes, need):
    assert cheapest(sizes, need) == [i for i, size in enumerate(sizes) if size]


def test_it_is_empty_where_all_together_do_not_suffice():
    assert cheapest([10 * GIB] * 3, 30 * GIB + 1) == []


@LOTS
@given(st.lists(st.integers(0, 3 * GIB), min_size=1, max_size=12), st.integers(1, 20 * GIB))
def test_it_covers_the_need_whenever_that_is_possible(sizes, need):
    assert (sum(sizes[i] for i in cheapest(sizes, need)) >= need) == (sum(sizes) >= need)


@LOTS
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 50)), min_size=1, max_size=8),
    st.integers(1, 90),
    st.sampled_from([1, 1000, GIB]),
)
def test_it_is_as_cheap_as_any_choice_whatever_the_unit(gangs, need, unit):
    sizes, costs = [size * unit for size, _ in gangs], [float(cost) for _, cost in gangs]
    chosen, best = cheapest(sizes, need * unit, costs), least(sizes, need * unit, costs)
    assert sum(costs[i] for i in chosen) == (best or 0.0)
