"""How members are shared out over watchers."""

from hypothesis import given
from hypothesis import strategies as st

from fleet.core.members import sharding


def test_it_gives_a_watcher_that_is_alone_everything():
    assert sharding.quotas({"a": 0}, 5) == {"a": 5}
    assert sharding.quotas({"a": 0}, 0) == {"a": 0}
    assert sharding.quotas({}, 5) == {}


def test_it_leaves_the_odd_member_with_the_watcher_that_has_the_most():
    assert sharding.quotas({"a": 0, "b": 5}, 5) == {"a": 2, "b": 3}


def test_it_makes_room_for_a_watcher_that_joins_a_balanced_fleet():
    assert sharding.quotas({"a": 2, "b": 2, "c": 2, "d": 0}, 6) == {"a": 2, "b": 2, "c": 1, "d": 1}


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 50), min_size=1, max_size=8), st.integers(0, 200))
def test_it_gives_every_member_to_one_watcher_and_quotas_that_differ_by_one(owned, members):
    quotas = sharding.quotas(owned, members)
    assert sum(quotas.values()) == members and quotas.keys() == owned.keys()
    assert max(quotas.values()) - min(quotas.values()) <= 1


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 50), min_size=1, max_size=8))
def test_it_moves_nothing_once_quotas_are_met(owned):
    quotas = sharding.quotas(owned, sum(owned.values()))
    assert sharding.quotas(quotas, sum(owned.values())) == quotas
