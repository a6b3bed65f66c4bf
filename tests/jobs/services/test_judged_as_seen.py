"""What Convoy could not see is not judged: neither by a clock that went on while it was away, nor by an old picture (I12)."""

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.models import Cluster
from fleet.services.clusters import freshness
from jobs.models import Job
from jobs.services.follow.timeouts import health
from tests.support import books
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
FAILOVER = POLICY.replace(
    "  propagateDeps: true",
    """  propagateDeps: true
  failover: {application: {decisionConditions: {tolerationSeconds: 30}}, cluster: {purgeMode: Graciously}}""",
)
S = timedelta(seconds=1)
NOW = timezone.now() + timedelta(days=1)
"""Later than all that the stories write by the real clock."""
LOST = [{"key": "cluster.karmada.io/unreachable", "value": "", "effect": "NoExecute", "timeAdded": NOW.isoformat()}]


@pytest.fixture
def cluster():
    made = books.a_cluster()
    see(NOW)
    books.apply(FAILOVER, pytorch_job("train", workers=0))
    books.cycle()
    books.sent()
    return made


def see(at, **fields):
    freshness.confirm(list(Cluster.objects.values_list("pk", flat=True)), at)
    Cluster.objects.update(looked_at=at, **fields)


def test_it_moves_a_job_that_does_not_start_while_somebody_watches(cluster):
    for second in range(0, 700, 10):
        see(NOW + second * S)
    assert health.check(NOW + 700 * S) == 1


def test_it_gives_a_job_its_whole_time_to_start_after_11_minutes_in_which_convoy_was_away(cluster):
    see(NOW + 660 * S)
    assert health.check(NOW + 661 * S) == 0
    for second in range(660, 1270, 10):
        see(NOW + second * S)
    assert health.check(NOW + 1270 * S) == 1


def test_it_judges_no_unhealthy_job_before_the_watcher_is_back(cluster):
    Job.objects.update(state=Job.State.BACKOFF, unhealthy_since=NOW + S)
    assert health.check(NOW + 660 * S) == 0
    see(NOW + 661 * S)
    assert health.check(NOW + 662 * S) == 0
    see(NOW + 671 * S)
    see(NOW + 681 * S)
    see(NOW + 691 * S)
    assert health.check(NOW + 692 * S) == 1


def test_it_moves_nobody_for_a_taint_that_grew_old_while_the_heartbeat_was_away(cluster):
    Cluster.objects.update(state="Unknown", taints=LOST, looked_at=NOW)
    assert health.check(NOW + 600 * S) == 0
    freshness.resume(NOW + 600 * S)
    assert health.check(NOW + 601 * S) == 0
    for second in range(600, 640, 10):
        Cluster.objects.update(looked_at=NOW + second * S)
    assert health.check(NOW + 640 * S) == 1


def test_it_places_nothing_by_an_old_picture_and_says_as_of_when_it_is(cluster):
    freshness.review(NOW + 60 * S)
    books.apply(pytorch_job("late", workers=0))
    assert books.cycle(NOW + 60 * S) == 0
    assert "shown as of" in str(books.job("late").reason)
    see(NOW + 61 * S)
    freshness.review(NOW + 61 * S)
    assert books.cycle(NOW + 61 * S) == 1
