"""When a job leaves its cluster and where it may not go back to yet."""

from datetime import timedelta

import pytest

from jobs.core.failover.causes import Cause, Failure, PodEnd, lost_nodes
from jobs.core.failover.rules import Outcome, Past, budget_spent, excluded_until, leaves_cluster_at
from jobs.core.taints import Taint, Toleration
from tests.jobs.core.builders import NOON

COOL_OFF = timedelta(minutes=5)
LOST = Taint("cluster.karmada.io/unreachable", "NoExecute", added_at=NOON)


def test_it_tolerates_a_lost_cluster_for_the_default_when_the_policy_is_silent():
    assert leaves_cluster_at([LOST], [], 60) == NOON + timedelta(seconds=60)


def test_it_takes_the_shortest_matching_toleration():
    tolerations = [Toleration(operator="Exists", seconds=300), Toleration(key=LOST.key, operator="Exists", seconds=5)]
    assert leaves_cluster_at([LOST], tolerations, 60) == NOON + timedelta(seconds=5)


def test_it_stays_for_ever_when_a_toleration_has_no_limit():
    assert leaves_cluster_at([LOST], [Toleration(operator="Exists")], 60) is None


def test_it_ignores_taints_that_only_keep_new_jobs_away():
    assert leaves_cluster_at([Taint("x", "NoSchedule", added_at=NOON)], [], 60) is None


def test_it_doubles_the_cool_off_with_each_failure_on_the_same_cluster():
    past = [Past("north", Outcome.FAILED, NOON), Past("north", Outcome.REFUSED, NOON + timedelta(hours=1))]
    assert excluded_until(past, COOL_OFF) == {"north": NOON + timedelta(hours=1) + 2 * COOL_OFF}


def test_it_does_not_blame_a_cluster_that_was_lost_or_a_job_that_was_suspended():
    past = [Past("north", Outcome.LOST, NOON), Past("south", Outcome.SUSPENDED, NOON)]
    assert excluded_until(past, COOL_OFF) == {} and budget_spent(past, 1) == ""


def ends(outcome: Outcome, *minutes: float, on: str = "north") -> list[Past]:
    return [Past(on, outcome, NOON + timedelta(minutes=minute)) for minute in minutes]


def test_it_backs_off_from_a_cluster_where_somebody_deletes_the_copies():
    assert excluded_until(ends(Outcome.VANISHED, 0), COOL_OFF) == {}
    assert excluded_until(ends(Outcome.VANISHED, 0, 1), COOL_OFF) == {"north": NOON + timedelta(seconds=90)}
    assert excluded_until(ends(Outcome.VANISHED, 0, 1, 2), COOL_OFF) == {"north": NOON + timedelta(minutes=3)}


def test_lost_nodes_that_were_left_in_time_end_no_job_and_exclude_their_cluster_for_longer_each_time():
    ends = [NOON + timedelta(minutes=minute) for minute in range(9)]
    past = [Past("north", Outcome.FAILED, end, Cause.INFRASTRUCTURE, left_lost_nodes=2) for end in ends]
    assert budget_spent(past, 1) == ""
    assert budget_spent(past, 1, {Cause.INFRASTRUCTURE: 9}) == "lost its nodes 9 times within a day"
    assert excluded_until(past, COOL_OFF) == {"north": ends[-1] + timedelta(minutes=2**7)}


def test_a_cluster_is_excluded_for_lost_nodes_once_it_has_lost_four_within_an_hour_one_by_one():
    def until(*minutes, **stated):
        ends = [NOON + timedelta(minutes=minute) for minute in minutes]
        past = [Past("north", Outcome.FAILED, end, Cause.INFRASTRUCTURE, left_lost_nodes=1) for end in ends]
        return excluded_until(past, COOL_OFF, **stated)

    assert until(0, 3, 6) == until(*range(0, 1440, 21)) == {}
    assert until(0, 3, 6, 9) == {"north": NOON + timedelta(minutes=10)}
    assert until(0, 3, 6, 9, of_causes={Cause.INFRASTRUCTURE: 0}) == {}


def test_two_lost_nodes_of_many_pods_are_stored_as_two():
    pods = [PodEnd(f"w-{i}", "Running", node="n1" if i < 30 else "n2", node_ready=False) for i in range(32)]
    stored = Failure(Cause.INFRASTRUCTURE, tuple(pods)).evidence_as_json()
    assert len(stored) == 20 and lost_nodes(stored) == {"n1", "n2"}


@pytest.mark.parametrize("lost", [(1, 2, 1, 1), (2, 1, 1, 1), (1, 1, 1, 2)])
def test_a_loss_of_several_nodes_counts_among_those_one_by_one(lost):
    ends = [NOON + timedelta(minutes=5 * number) for number in range(4)]
    past = [
        Past("north", Outcome.FAILED, end, Cause.INFRASTRUCTURE, left_lost_nodes=nodes)
        for end, nodes in zip(ends, lost, strict=True)
    ]
    assert excluded_until(past[:3], COOL_OFF) == {}
    assert excluded_until(past, COOL_OFF) == {"north": ends[-1] + timedelta(minutes=1)}


def test_it_ends_a_job_whose_copies_are_deleted_for_ever():
    assert budget_spent(ends(Outcome.VANISHED, 0, 1), 3) == ""
    assert (
        budget_spent(ends(Outcome.VANISHED, 0, 1, 2), 3)
        == "lost its copy to a deletion in its cluster 3 times within a day"
    )
    assert budget_spent(ends(Outcome.VANISHED, 0, 1, 3000), 3) == ""


def test_it_is_patient_with_lost_clusters_but_not_for_ever():
    assert excluded_until(ends(Outcome.LOST, 0, 10), COOL_OFF) == {"north": NOON + timedelta(minutes=11)}
    assert budget_spent(ends(Outcome.LOST, *range(7)), 2) == ""
    assert budget_spent(ends(Outcome.LOST, *range(8)), 2) == "lost its cluster 8 times within a day"


def test_a_policy_says_how_long_a_cluster_is_excluded_after_failures_of_a_cause():
    of_memory = [Past("north", Outcome.FAILED, NOON, Cause.OUT_OF_MEMORY)]
    lost = ends(Outcome.LOST, 0, 10)
    stated = {Cause.OUT_OF_MEMORY: 7, Cause.INFRASTRUCTURE: 600}
    assert excluded_until(of_memory, COOL_OFF, stated) == {"north": NOON + timedelta(seconds=7)}
    assert excluded_until(lost, COOL_OFF, stated) == {"north": NOON + timedelta(minutes=20)}
    assert excluded_until(ends(Outcome.FAILED, 0), COOL_OFF, stated) == {"north": NOON + COOL_OFF}
    assert excluded_until(of_memory, COOL_OFF, {Cause.OUT_OF_MEMORY: 0}) == {}


def test_it_counts_the_classes_apart_and_takes_the_longest_cool_off():
    past = [*ends(Outcome.FAILED, 0), *ends(Outcome.VANISHED, 3, 4)]
    assert budget_spent(past, 3) == "" and excluded_until(past, COOL_OFF) == {"north": NOON + COOL_OFF}
    assert budget_spent([*past, *ends(Outcome.REFUSED, 5, 6)], 3) == "failed 3 times"


def test_it_excludes_no_cluster_beyond_the_end_of_time():
    assert excluded_until(ends(Outcome.FAILED, *range(999)), COOL_OFF)["north"] < NOON + timedelta(days=3)
