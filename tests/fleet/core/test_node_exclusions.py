"""Laws of the leases of faulty nodes: they end, they grow with faults, and a clock that jumps does not make them longer."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from fleet.core.node_exclusions import Lease, after_clock_step, extended, length, most_excluded
from fleet.core.settings import NodeExclusionSettings

SETTINGS = NodeExclusionSettings()
LONGEST = timedelta(seconds=SETTINGS.longest_lease_s)
NOW = datetime(2026, 11, 26, tzinfo=UTC)
GAPS = st.lists(st.floats(min_value=1, max_value=3 * SETTINGS.memory_s), min_size=1, max_size=20)


def play(gaps):
    """A fault after each gap: the times, and the lease after each."""
    now, lease = NOW, None
    for gap in gaps:
        now += timedelta(seconds=gap)
        lease = extended(lease, now, now, SETTINGS)
        yield now, lease


@given(GAPS)
def test_every_lease_ends_and_no_fault_makes_it_shorter(gaps):
    before = None
    for now, lease in play(gaps):
        assert now < lease.until <= now + LONGEST
        assert before is None or before.is_over(now) or lease.until >= before.until
        before = lease


@given(GAPS)
def test_a_fault_that_is_reported_again_changes_nothing(gaps):
    for now, lease in play(gaps):
        assert extended(lease, lease.fault_at, now, SETTINGS) == lease
        assert extended(lease, lease.fault_at - timedelta(seconds=1), now, SETTINGS) == lease


def test_a_node_that_flaps_is_away_longer_each_time_and_forgiven_after_a_long_quiet():
    hour = timedelta(hours=1)
    lengths, now, lease = [], NOW, None
    for _ in range(7):
        lease = extended(lease, now, now, SETTINGS)
        lengths.append((lease.until - now) / hour)
        now = lease.until + timedelta(minutes=1)
        if lengths[-1] == 24:
            break
    assert lengths == [1, 2, 4, 8, 16, 24]
    later = lease.fault_at + timedelta(seconds=SETTINGS.memory_s, minutes=1)
    assert extended(lease, later, later, SETTINGS) == Lease(later, later + hour, 1, later)


def test_a_member_whose_clock_is_ahead_does_not_make_a_lease_longer():
    lease = extended(None, NOW + timedelta(days=9), NOW, SETTINGS)
    assert lease == Lease(NOW, NOW + length(1, SETTINGS), 1, NOW)


@given(GAPS, st.floats(min_value=-1e6, max_value=1e6))
def test_after_a_clock_step_a_lease_lasts_its_own_length_at_the_most(gaps, step):
    for now, lease in play(gaps):
        stepped = now + timedelta(seconds=step)
        settled = after_clock_step(lease, stepped)
        assert settled.until - settled.since == lease.until - lease.since
        assert settled.since <= max(stepped, lease.since) and settled.until - stepped <= lease.until - lease.since
        assert after_clock_step(settled, stepped) == settled


def test_repeated_faults_exclude_a_share_of_a_cluster_and_one_node_of_a_small_one():
    assert [most_excluded(nodes, SETTINGS) for nodes in (1, 4, 10, 100)] == [1, 1, 2, 20]
    assert most_excluded(100, replace(SETTINGS, most_share=0)) == 1
