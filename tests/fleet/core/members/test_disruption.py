"""Which failures are taken for one fault of ours, and which each for the member's own."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.core.members.disruption import Limits, find

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LIMITS = Limits()


def spared(minutes: list[float], members: int, limits: Limits = LIMITS) -> int:
    """How many members are spared, of those that began to fail at these minutes."""
    return len(find({f"m{i}": NOW + timedelta(minutes=m) for i, m in enumerate(minutes)}, members, limits))


@pytest.mark.parametrize(
    ("minutes", "members", "count"),
    [
        pytest.param([], 100, 0, id="all well"),
        pytest.param([0], 100, 0, id="one of many"),
        pytest.param([0] * 100, 100, 100, id="all of many"),
        pytest.param([0] * 50, 100, 0, id="half of many"),
        pytest.param([0] * 51, 100, 51, id="more than half of many"),
        pytest.param([0, 1, 2], 4, 3, id="three of four, a minute apart"),
        pytest.param([0, 0], 4, 0, id="two of four"),
        pytest.param([0], 1, 0, id="one of one has nowhere to go anyway"),
        pytest.param([0], 2, 0, id="one of two"),
        pytest.param([0, 4], 2, 2, id="both of two"),
        pytest.param([0, 6], 2, 0, id="both of two, but one long after the other"),
        pytest.param([0, 0], 3, 0, id="two of three"),
        pytest.param([0, 0, 0], 3, 3, id="three of three"),
        pytest.param([0, 0, 0, 60], 5, 3, id="the fourth of five an hour after three"),
        pytest.param([0, 20, 40], 5, 0, id="three of five, far apart"),
        pytest.param([0, 0, 60], 3, 0, id="the third of three an hour after the others"),
        pytest.param([0] * 5 + [60] * 5, 10, 5, id="those that were left after an outage, all at once"),
        pytest.param([i * 10 for i in range(10)], 10, 0, id="one after the other"),
    ],
)
def test_it_spares_members_that_fail_together(minutes, members, count):
    assert spared(minutes, members) == count


def test_it_follows_its_settings():
    assert spared([0] * 40, 100, Limits(share=0.3)) == 40
    assert spared([0, 6], 2, Limits(window=timedelta(minutes=10))) == 2


@given(st.integers(0, 20), st.integers(0, 20))
def test_it_treats_alike_all_that_fail_at_once(failing, well):
    assert spared([0.0] * failing, failing + well) in (0, failing)
