"""The age of the fleet's Lease is measured by the agent's own clock, from the renewals that it sees."""

from agent.core import FleetLease


def lease(renewal: str, duration: object = 120) -> dict:
    return {"spec": {"renewTime": renewal, "leaseDurationSeconds": duration}}


def test_it_expires_when_no_renewal_was_seen_for_its_duration_whatever_the_time_in_it_says():
    watched = FleetLease(100.0)
    assert not watched.look(lease("1999-01-01T00:00:00Z"), 100.0)
    assert watched.look(lease("2999-01-01T00:00:00Z"), 110.0)
    assert not watched.look(lease("2999-01-01T00:00:00Z"), 229.0)
    assert not watched.has_expired(230.0) and watched.has_expired(230.1)
    assert watched.look(lease("1970-01-01T00:00:00Z"), 300.0), "a clock that was set back still renews"
    assert not watched.has_expired(419.0)


def test_a_process_that_has_just_started_waits_for_half_of_it():
    watched = FleetLease(100.0)
    watched.look(lease("2026-01-01T00:00:00Z"), 100.0)
    assert not watched.has_expired(159.0) and watched.has_expired(161.0)
    assert watched.look(lease("2026-01-01T00:00:30Z"), 161.0) and not watched.has_expired(280.0)


def test_a_lease_that_was_deleted_and_made_anew_is_not_renewed():
    watched = FleetLease(0.0)
    watched.look(lease("a"), 0.0)
    watched.look(lease("b"), 10.0)
    assert not watched.look({}, 20.0) and not watched.look({"spec": {}}, 30.0)
    assert watched.has_expired(131.0) and watched.look(lease("c"), 140.0)


def test_a_duration_counts_with_the_renewal_that_brought_it():
    watched = FleetLease(0.0)
    watched.look(lease("a", 60), 0.0)
    watched.look(lease("b", 60), 1.0)
    watched.look(lease("b", 3600), 2.0)
    assert watched.has_expired(62.0)
    for odd in (None, "60", True, -1, 0):
        watched.look(lease(f"c{odd}", odd), 70.0)
        assert watched.duration_s == 60.0
