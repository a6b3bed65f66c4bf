"""The state of a member, look by look."""

from datetime import UTC, datetime, timedelta

import pytest

from fleet.core.members import health
from fleet.core.members.disruption import Disruption
from fleet.core.members.health import Health, Look, State

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GRACE = timedelta(seconds=10)
WELL = Look(True, True)
ILL = Look(True, False, "ClusterNotHealthy", "etcd is down")
SILENT = Look(False, False, "ClusterNotReachable", "no answer")
READY = Health(State.READY, "ClusterReady", "", NOW)
NOT_READY = Health(State.NOT_READY, "ClusterNotHealthy", "", NOW)
UNKNOWN = Health(State.UNKNOWN, "ClusterNotReachable", "", NOW)
REFUSED = Health(State.NOT_READY, health.CREDENTIALS_REFUSED, "Unauthorized", NOW)


def after(looks, health_before=READY):
    """The states after looks given as (seconds, look)."""
    states = []
    current = health_before
    for seconds, look in looks:
        current = health.after(current, look, NOW + timedelta(seconds=seconds), GRACE)
        states.append(current.state.value)
    return states


@pytest.mark.parametrize(
    ("looks", "states"),
    [
        pytest.param([(0, WELL), (2, WELL)], ["Ready", "Ready"], id="well"),
        pytest.param([(0, SILENT), (8, SILENT)], ["Ready", "Ready"], id="silent within the grace"),
        pytest.param([(0, SILENT), (10, SILENT)], ["Ready", "Unknown"], id="silent for the whole grace"),
        pytest.param([(0, ILL), (10, ILL)], ["Ready", "NotReady"], id="ill for the whole grace"),
        pytest.param([(0, SILENT), (9, WELL), (11, SILENT)], ["Ready", "Ready", "Ready"], id="an answer in between"),
        pytest.param([(0, SILENT), (10, SILENT), (11, WELL)], ["Ready", "Unknown", "Ready"], id="back at once"),
        pytest.param([(0, SILENT), (10, SILENT), (12, ILL)], ["Ready", "Unknown", "NotReady"], id="answers, but ill"),
        pytest.param([(3600, SILENT)], ["Ready"], id="our own pause is not its silence"),
        pytest.param([(0, SILENT), (-3600, SILENT), (-3595, SILENT)], ["Ready"] * 3, id="clock back: count again"),
        pytest.param([(0, SILENT), (-3600, SILENT), (-3590, SILENT)], ["Ready", "Ready", "Unknown"], id="and in time"),
        pytest.param([(0, WELL), (-3600, WELL), (-3598, SILENT)], ["Ready"] * 3, id="clock back while well"),
    ],
)
def test_it_moves_only_after_looks_that_failed_for_the_whole_grace(looks, states):
    assert after(looks) == states


def test_it_keeps_the_moment_it_moved():
    gone = health.after(READY, SILENT, NOW, timedelta())
    later = health.after(gone, SILENT, NOW + timedelta(seconds=5), timedelta())
    assert (gone.since, later.since) == (NOW, NOW)


def test_it_taints_a_member_that_is_not_well_and_keeps_the_time():
    first = health.taints([], UNKNOWN, NOW)
    assert {(t["key"], t["effect"]) for t in first} == {(health.UNREACHABLE_TAINT, e) for e in health.EFFECTS}
    assert health.taints(first, UNKNOWN, NOW + timedelta(seconds=60)) == first


def test_it_exchanges_its_own_taints_and_leaves_those_of_people():
    mine = {"key": "team", "value": "vision", "effect": "NoSchedule", "timeAdded": NOW.isoformat()}
    tainted = health.taints([mine], UNKNOWN, NOW)
    moved = health.taints(tainted, NOT_READY, NOW)
    assert {t["key"] for t in moved} == {"team", health.NOT_READY_TAINT}
    assert health.taints(moved, READY, NOW) == [mine]


def effects(health_: Health, present=()):
    return {(t["key"], t["effect"]) for t in health.taints(present, health_, NOW)}


def test_it_evicts_nobody_for_a_fault_of_ours():
    assert effects(REFUSED) == {(health.NOT_READY_TAINT, "NoSchedule")}
    unreadable = Health(State.UNKNOWN, health.CREDENTIALS_UNREADABLE, "", NOW)
    assert effects(unreadable) == {(health.UNREACHABLE_TAINT, "NoSchedule")}
    spared = health.spared(UNKNOWN, Disruption(62, 100))
    assert effects(spared) == {(health.UNREACHABLE_TAINT, "NoSchedule")} and "62 of 100 clusters" in spared.message


def test_it_takes_back_the_eviction_when_the_fault_turns_out_to_be_ours_and_counts_anew_when_not():
    tainted = health.taints([], UNKNOWN, NOW)
    spared = health.taints(tainted, health.spared(UNKNOWN, Disruption(4, 4)), NOW)
    assert [t["effect"] for t in spared] == ["NoSchedule"]
    again = health.taints(spared, UNKNOWN, NOW + timedelta(minutes=9))
    assert {t["effect"]: t["timeAdded"] for t in again} == {
        "NoSchedule": NOW.isoformat(),
        "NoExecute": (NOW + timedelta(minutes=9)).isoformat(),
    }


def test_it_says_why_it_spares_a_member_however_long_its_own_message_is():
    long = Health(State.UNKNOWN, "ClusterNotReachable", "x" * 500, NOW)
    spared = health.spared(long, Disruption(100, 100))
    assert len(spared.message) == 500 and spared.message.endswith("control plane's own network")


def test_a_taint_from_before_the_clock_stepped_back_begins_again():
    later = NOW + timedelta(hours=1)
    drain = {"key": "convoy.dev/drained", "value": "", "effect": "NoExecute", "timeAdded": later.isoformat()}
    taints = health.taints([drain], UNKNOWN, later)
    assert {t["timeAdded"] for t in taints} == {later.isoformat()}
    assert {t["timeAdded"] for t in health.taints(taints, UNKNOWN, NOW)} == {NOW.isoformat()}
