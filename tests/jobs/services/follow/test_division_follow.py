"""What members report of the pods of one share: refusals, crash loops, and which share they end or move."""

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.core.members import observed
from fleet.models import Cluster, Event, Pod
from jobs.core.failover.rules import Outcome
from jobs.models import Attempt, Job, Work
from jobs.services.failover import division
from jobs.services.follow import division_status
from jobs.services.follow.status import JobEventHandler
from jobs.services.follow.timeouts import health
from tests.support import books, laws
from tests.support.division import LOST, NO_FAILOVER, SPREAD, report_share, sweep_job

pytestmark = pytest.mark.django_db
QUOTA = 'pods "sweep-x" is forbidden: exceeded quota: team'


def divided(policy: str = SPREAD) -> Job:
    """On north with 4 pods (attempt 1), on south with 2 (attempt 2); both sent. East has room for 2."""
    for name, gpus in (("north", 5), ("south", 3), ("east", 2)):
        books.a_cluster(name, gpus=gpus)
    books.apply(policy, sweep_job(pods=6))
    assert books.cycle() == 1
    Work.objects.update(state="Applied", applied_at=timezone.now())
    report_share(1, {"active": 4}, running=4)
    return report_share(2, {})


def refuse(cluster: str, message: str = QUOTA, now=None) -> dict:
    about = {"kind": "Job", "namespace": "default", "name": "sweep", "uid": ""}
    event = {"metadata": {"namespace": "default"}, "type": "Warning", "involvedObject": about}
    refusal = observed.refusal({**event, "reason": "FailedCreate", "message": message})
    JobEventHandler().on_refusals(Cluster.objects.get(name=cluster).pk, [refusal], now or timezone.now())
    return Job.objects.get().reason


def pod(attempt: int, number: int = 0, **fields) -> Pod:
    job, cluster = Job.objects.get(), Work.objects.get(attempt=attempt).cluster
    known = {"phase": "Running", "created_at": timezone.now(), "uid": f"p{attempt}{number}", "node": "n"}
    marks = {"job_uid": job.uid, "attempt": attempt, "namespace": "default", "name": f"sweep-{attempt}-{number}"}
    return Pod.objects.create(cluster=cluster, **{**known, **fields, **marks})


def loops(attempt: int) -> Pod:
    return pod(attempt, restarts=7, exit_code=1, reason="Error")


def pods_changed(attempt: int) -> Job:
    """The watcher reports that pods of the share changed."""
    job, work = Job.objects.get(), Work.objects.get(attempt=attempt)
    JobEventHandler().on_pods_changed(work.cluster_id, {(job.uid, attempt)}, timezone.now())
    return Job.objects.get()


def check(seconds: float) -> Job:
    health.check(timezone.now() + timedelta(seconds=seconds))
    return Job.objects.get()


def test_the_refusal_of_one_member_is_shown_with_its_share():
    divided()
    reason = refuse("south")
    assert (reason["code"], list(reason["shares"])) == ("MemberRefused", ["2"])
    assert reason["message"].startswith("south has its share but does not create its pods: FailedCreate: pods")
    assert report_share(2, {}).reason == reason, "a report without pods takes it back"
    assert Event.objects.filter(reason="PodsRefused").count() == 1


def test_the_refusals_of_several_members_stand_beside_each_other():
    divided()
    Job.objects.update(shares=[{**share, "state": "Dispatched"} for share in Job.objects.get().shares])
    refuse("south")
    reason = refuse("north")
    assert sorted(reason["shares"]) == ["1", "2"]
    assert reason["message"].startswith("north has its share") and "; south has its share" in reason["message"]


def test_it_is_over_once_the_pods_of_the_share_are_there():
    divided()
    refuse("south")
    assert report_share(2, {}, created=2).reason["code"] == "WaitingForPods"
    for number in range(2):
        pod(2, number, phase="Pending")
    assert refuse("south")["code"] == "WaitingForPods", "an old event is believed"


def test_a_share_that_is_refused_for_too_long_leaves_as_refused(settings):
    divided()
    refuse("south")
    job = check(2 * settings.CONVOY_FAILOVER.start_timeout_s)
    assert [(share["cluster"], share["state"]) for share in job.shares] == [("north", "Running"), ("south", "Lost")]
    attempt = Attempt.objects.get(number=2)
    assert (attempt.outcome, attempt.cause) == ("Refused", "MemberRefused") and QUOTA in attempt.message


def test_a_flood_of_events_changes_the_job_every_few_seconds_at_most():
    divided()
    now = timezone.now()
    first = refuse("south", now=now)
    for number in range(20):
        assert refuse("south", f"{QUOTA} {number}", now) == first
    later = now + timedelta(seconds=30)
    assert refuse("south", f"{QUOTA} again", later) != first


def test_a_share_whose_pods_only_restart_makes_the_job_unhealthy():
    divided()
    report_share(2, {"active": 2}, running=2)
    loops(2)
    job = pods_changed(2)
    assert job.unhealthy_since and "unhealthy_since" in job.shares[1] and not job.shares[0]["unhealthy_since"]
    (line,) = Event.objects.filter(reason="CrashLoop")
    assert "sweep-2-0 has restarted 7 times, last with exit code 1" in line.message
    pods_changed(2)
    assert Event.objects.filter(reason="CrashLoop").count() == 1


def test_only_the_share_that_crashes_moves_and_its_cause_is_kept():
    divided()
    report_share(2, {"active": 2}, running=2)
    loops(2)
    pods_changed(2)
    job = check(1)
    assert [(share["cluster"], share["state"]) for share in job.shares] == [("north", "Running"), ("south", "Lost")]
    attempt = Attempt.objects.get(number=2)
    assert (attempt.outcome, attempt.cause) == ("Failed", "CodeError")
    assert Work.objects.get(attempt=2).state == "Applied", "it is removed before its replacement has a place"


def test_a_crashing_share_ends_the_job_without_a_failover_policy(settings):
    divided(NO_FAILOVER)
    report_share(2, {"active": 2}, running=2)
    loops(2)
    pods_changed(2)
    assert check(settings.CONVOY_FAILOVER.crash_loop_s / 2).state == "Running"
    job = check(settings.CONVOY_FAILOVER.crash_loop_s + 1)
    assert (job.state, job.reason["cause"]) == ("Failed", "CodeError")
    assert "restarted 7 times" in job.reason["message"]
    laws.terminal_holds_nothing()


def test_a_share_that_keeps_running_again_is_healthy():
    divided()
    report_share(2, {"active": 2}, running=2)
    crashed = loops(2)
    pods_changed(2)
    crashed.delete()
    job = check(1)
    assert (job.state, job.unhealthy_since, job.reason) == ("Running", None, None)


def test_the_copy_of_a_share_that_was_replaced_does_not_count_when_it_returns():
    divided()
    division.leave(Job.objects.get(), 2, Outcome.LOST, LOST, timezone.now())
    assert books.cycle() == 1
    job = report_share(2, {"active": 2}, running=2)
    assert [(share["attempt"], share["state"]) for share in job.shares] == [(1, "Running"), (2, "Lost"), (3, "Placed")]
    assert not division_status.counts(job, 2) and not division_status.counts(job, 2, succeeded=True)
