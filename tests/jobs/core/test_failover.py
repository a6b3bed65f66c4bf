"""When a job leaves its cluster and where it may not go back to yet."""

from datetime import timedelta

from jobs.core.failover import COOL_OFF, Outcome, Past, blamed, excluded_until, leaves_cluster_at
from jobs.core.taints import Taint, Toleration
from tests.jobs.core.builders import NOON

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
    assert excluded_until(past) == {"north": NOON + timedelta(hours=1) + 2 * COOL_OFF}


def test_it_does_not_blame_a_cluster_that_was_lost_or_a_job_that_was_suspended():
    past = [Past("north", Outcome.LOST, NOON), Past("south", Outcome.SUSPENDED, NOON)]
    assert excluded_until(past) == {} and blamed(past) == 0
