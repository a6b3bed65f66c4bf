"""How many pods each cluster gets: Karmada's examples by name, and laws against brute force on tiny fleets."""

from collections.abc import Mapping
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.division.replicas import Choice, Preference, Strategy, divide, webster
from jobs.core.division.spread import Spread

ROOMY = Strategy(Preference.BY_ROOM)
WEIGHED = Strategy(Preference.BY_WEIGHT)


def rooms(**by_name: int) -> list[Choice]:
    return [Choice(name, room) for name, room in by_name.items()]


def weighed(**by_name: int) -> list[Choice]:
    return [Choice(name, 100, weight=weight) for name, weight in by_name.items()]


@pytest.mark.parametrize(
    ("replicas", "weights", "shares"),
    [
        pytest.param(3, {"member1": 1, "member2": 2}, {"member1": 1, "member2": 2}, id="1:2"),
        pytest.param(10, {"member1": 1, "member2": 1, "member3": 1}, {"member1": 4, "member2": 3, "member3": 3}, id="1:1:1"),
        pytest.param(2, {"member1": 1, "member2": 1, "member3": 1}, {"member1": 1, "member2": 1}, id="fewer than clusters"),
        pytest.param(5, {"member1": 0, "member2": 1}, {"member2": 5}, id="weight 0 gets none"),
        pytest.param(4, {"member1": 0, "member2": 0}, {"member1": 2, "member2": 2}, id="all 0 are equal"),
    ],
)  # fmt: skip
def test_it_divides_by_static_weights(replicas: int, weights: Mapping[str, int], shares: Mapping[str, int]) -> None:
    assert divide(replicas, weighed(**weights), WEIGHED) == shares


def test_it_divides_by_room_as_karmada_documents() -> None:
    """12 replicas on clusters that have room for 6, 12 and 18."""
    assert divide(12, rooms(a=6, b=12, c=18), ROOMY) == {"a": 2, "b": 4, "c": 6}


def test_it_aggregates_on_as_few_clusters_as_hold_it() -> None:
    assert divide(12, rooms(a=6, b=12, c=18), Strategy()) == {"c": 12}
    assert divide(20, rooms(a=6, b=12, c=18), Strategy()) == {"b": 8, "c": 12}


def test_it_never_bends_static_weights_to_what_is_free() -> None:
    assert divide(6, [Choice("a", 1, weight=1), Choice("b", 9, weight=1)], WEIGHED) == {}


def test_it_fills_a_tier_before_it_spills_into_the_next() -> None:
    tiers = [Choice("own", 4), Choice("burst", 9, tier=1), Choice("cloud", 9, tier=2)]
    assert divide(4, tiers, ROOMY) == {"own": 4}
    assert divide(6, tiers, ROOMY) == {"own": 4, "burst": 2}
    assert divide(15, tiers, ROOMY) == {"own": 4, "burst": 9, "cloud": 2}
    assert divide(23, tiers, ROOMY) == {}


def test_it_gives_every_group_that_is_asked_for_a_pod() -> None:
    zoned = [Choice("a", 50, {"region": "x"}), Choice("b", 1, {"region": "y"}), Choice("c", 9, {"region": "x"})]
    assert divide(4, zoned, Strategy(spreads=(Spread("region", 2),))) == {"a": 3, "b": 1}
    assert divide(4, zoned, Strategy(spreads=(Spread("region", 3),))) == {}


def test_it_counts_the_shares_that_stand() -> None:
    standing = [Choice("a", 0, {"region": "x"})]
    two = Strategy(ROOMY.preference, (Spread("cluster", 1, 2),))
    assert divide(4, rooms(b=3, c=3), two, standing) == {}
    assert divide(3, rooms(b=3, c=3), two, standing) == {"b": 3}


_ROOMS = st.lists(st.integers(0, 5), min_size=1, max_size=5)
_REGIONS = st.lists(st.sampled_from(["x", "y", "z"]), min_size=5, max_size=5)
_BOUNDS = st.tuples(st.integers(1, 3), st.integers(0, 3)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(
    st.integers(1, 12), _ROOMS, _REGIONS, _BOUNDS, _BOUNDS, st.sampled_from([ROOMY.preference, Preference.AGGREGATED])
)
def test_it_divides_if_and_only_if_some_choice_of_clusters_does(
    replicas: int,
    free: list[int],
    regions: list[str],
    clusters: tuple[int, int],
    groups: tuple[int, int],
    how: Preference,
) -> None:
    choices = [Choice(f"c{i}", room, {"region": regions[i]}) for i, room in enumerate(free)]
    strategy = Strategy(how, (Spread("cluster", *clusters), Spread("region", *groups)))
    shares = divide(replicas, choices, strategy)
    usable = [each for each in choices if each.room]
    possible = [
        some
        for count in range(clusters[0], clusters[1] + 1)
        for some in combinations(usable, count)
        if sum(each.room for each in some) >= replicas >= count
        and groups[0] <= len({each.places["region"] for each in some}) <= groups[1]
    ]
    assert bool(shares) == bool(possible)
    if shares:
        got = [each for each in choices if each.name in shares]
        assert sum(shares.values()) == replicas
        assert all(1 <= shares[each.name] <= each.room for each in got)
        assert clusters[0] <= len(got) <= clusters[1]
        assert groups[0] <= len({each.places["region"] for each in got}) <= groups[1]
    if shares and how is Preference.AGGREGATED:
        assert len(shares) == min(len(some) for some in possible)


@given(st.integers(0, 30), st.lists(st.integers(1, 20), min_size=1, max_size=5))
def test_it_rounds_so_that_no_seat_would_be_better_elsewhere(seats: int, votes: list[int]) -> None:
    """Webster's own mark: no pair of clusters could move a seat and both come nearer to their quota's midpoint."""
    by_name = {f"c{i}": vote for i, vote in enumerate(votes)}
    shares = webster(seats, by_name)
    assert sum(shares.values()) == seats
    last = [Fraction(by_name[name], 2 * share - 1) for name, share in shares.items() if share]
    ahead = [Fraction(by_name[name], 2 * share + 1) for name, share in shares.items()]
    assert not last or min(last) >= max(ahead)
