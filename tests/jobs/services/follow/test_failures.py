"""Why a job failed is kept with its attempt; a job whose pods only restart is unhealthy, and leaves or fails."""

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.models import Hold, Pod
from jobs import snapshot
from jobs.models import Attempt, Job, Work
from jobs.services.follow.status import JobEventHandler
from jobs.services.follow.timeouts import health
from tests.support import books
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db
LATER = timedelta(seconds=700)


@pytest.fixture
def llama():
    """Runs on north; south has room for it."""
    books.a_cluster("north")
    books.a_cluster("south")
    books.apply(pytorch_job("llama"))
    return start()


def start():
    books.cycle()
    books.sent()
    books.report("llama", "Running")
    job = books.job("llama")
    for role in ("master", "worker"):
        pod(job, f"llama-{role}-0")
    return job


def pod(job, name, **fields):
    known = {
        "uid": f"{name}-{job.attempt}", "job_uid": job.uid, "attempt": job.attempt, "node": "node", "phase": "Running",
        "created_at": timezone.now(), "running_since": timezone.now(),
    }  # fmt: skip
    defaults = known | fields
    return Pod.objects.update_or_create(cluster=job.cluster, namespace="default", name=name, defaults=defaults)[0]


def restarts(job, count, **fields):
    """The worker has restarted so often and waits for its next start."""
    crashing = {"restarts": count, "reason": "CrashLoopBackOff", "exit_code": 1, "running_since": None}
    pod(job, "llama-worker-0", **(crashing | fields))
    JobEventHandler().on_pods_changed(job.cluster_id, {(job.uid, job.attempt)}, timezone.now())


def cause(number=1):
    attempt = Attempt.objects.get(number=number)
    return attempt.cause, [each["pod"] for each in attempt.evidence or []]


@pytest.mark.parametrize(
    ("worker", "expected"),
    [
        ({"phase": "Failed", "reason": "Error", "exit_code": 1}, "CodeError"),
        ({"phase": "Failed", "reason": "OOMKilled", "exit_code": 137}, "OutOfMemory"),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
        ({"phase": "Failed", "exit_code": 143, "disruption": "EvictionByEvictionAPI"}, "Evicted"),
        ({"phase": "Failed", "reason": "NodeLost"}, "Infrastructure"),
        ({"phase": "Failed", "exit_code": 139}, "Unknown"),
    ],
)
def test_it_keeps_the_cause_and_the_pods_that_show_it(llama, worker, expected):
    pod(llama, "llama-worker-0", **worker)
    books.report("llama", "Failed")
    assert cause() == (expected, ["llama-worker-0"])
    job = books.job("llama")
    assert job.state == "Failed" and f"{expected}: llama-worker-0" in job.reason["message"]


def test_it_blames_the_node_whose_loss_made_the_other_pods_fail(llama):
    pod(llama, "llama-master-0", phase="Failed", exit_code=1, node="other")
    llama.cluster.nodes.filter(name="node").update(ready=False)
    books.report("llama", "Failed")
    assert cause() == ("Infrastructure", ["llama-worker-0"])


def test_it_replaces_a_weak_cause_when_the_node_is_reported_lost_a_moment_later(llama):
    books.tolerating("llama", seconds=30)
    pod(llama, "llama-master-0", phase="Failed", exit_code=1)
    books.report("llama", "Failed")
    assert cause() == ("CodeError", ["llama-master-0"])
    llama.cluster.nodes.update(ready=False)
    assert health.check(timezone.now() + timedelta(seconds=31)) == 1
    assert cause()[0] == "Infrastructure"


def fails_and_moves():
    """By an error of its own, until it is over; how many attempts that takes."""
    for number in range(1, 9):
        job = start() if number > 1 else books.job("llama")
        pod(job, "llama-worker-0", phase="Failed", exit_code=1)
        books.report("llama", "Failed")
        health.check(timezone.now() + timedelta(seconds=31))
        if books.job("llama").state == "Failed":
            return number
    return None


def test_it_does_not_move_an_error_of_the_program_around_the_fleet(llama):
    books.tolerating("llama", seconds=30)
    assert fails_and_moves() == 2
    reason = books.job("llama").reason
    assert reason["code"] == "AttemptsExhausted" and "by an error of its own program 2 times" in reason["message"]


def test_a_policy_has_budgets_of_its_own_for_each_cause(llama):
    books.tolerating("llama", seconds=30)
    policy = books.job("llama").policy
    policy.manifest["metadata"]["annotations"] = {"convoy.dev/failure-budgets": "CodeError=1, Infrastructure=9"}
    policy.save()
    assert fails_and_moves() == 1


@pytest.mark.parametrize(
    ("stated", "excluded"), [("", {"north"}), ("CodeError=0", {"north"}), ("OutOfMemory=0", set())]
)
def test_a_policy_says_how_long_a_cluster_is_excluded_after_a_failure_of_a_cause(stated, excluded):
    books.a_cluster("north")
    books.apply(pytorch_job("llama"))
    job = start()
    books.tolerating("llama", seconds=30)
    policy = books.job("llama").policy
    policy.manifest["metadata"]["annotations"] = {"convoy.dev/cool-offs": stated}
    policy.save()
    pod(job, "llama-worker-0", phase="Failed", reason="OOMKilled", exit_code=137)
    books.report("llama", "Failed")
    Pod.objects.all().delete()
    health.check(timezone.now() + timedelta(seconds=31))
    assert set(snapshot.load_gangs(Job.objects.all())[0].excluded) == excluded


def test_a_job_without_a_policy_is_read_too(llama):
    Job.objects.update(policy=None, attempt=0)
    [gang] = snapshot.load_gangs(Job.objects.all())
    assert gang.policy is None and gang.excluded == {}


def test_it_is_unhealthy_while_a_pod_restarts_again_and_again_and_moves(llama):
    books.tolerating("llama", seconds=30)
    restarts(llama, 2)
    assert books.job("llama").unhealthy_since is None
    restarts(llama, 3)
    job = books.job("llama")
    assert (
        job.state == "Running"
        and "llama-worker-0 has restarted 3 times, last with exit code 1" in job.reason["message"]
    )
    assert health.check(timezone.now() + timedelta(seconds=31)) == 1
    assert cause() == ("CodeError", ["llama-worker-0"]) and books.job("llama").state == "Moving"


def test_short_runs_between_two_crashes_do_not_make_it_healthy(llama):
    books.tolerating("llama", seconds=30)
    restarts(llama, 3)
    since = books.job("llama").unhealthy_since
    restarts(llama, 4, reason="", running_since=timezone.now())
    books.report("llama", "Running")
    assert books.job("llama").unhealthy_since == since


def test_it_is_healthy_again_once_its_pods_keep_running(llama):
    books.tolerating("llama", seconds=30)
    restarts(llama, 3)
    restarts(llama, 3, reason="", running_since=timezone.now() - timedelta(seconds=16))
    assert (books.job("llama").unhealthy_since, books.job("llama").reason) == (None, None)


def test_pods_that_have_run_since_before_the_clock_was_set_back_are_in_no_crash_loop(llama):
    books.tolerating("llama", seconds=30)
    restarts(llama, 3)
    restarts(llama, 3, reason="", running_since=timezone.now() + timedelta(hours=1))
    assert books.job("llama").unhealthy_since is None
    assert health.check(timezone.now() + LATER) == 0 and books.job("llama").state == "Running"


def test_it_recovers_by_the_clock_when_no_report_says_that_its_pods_keep_running(llama):
    books.tolerating("llama", seconds=30)
    restarts(llama, 3, running_since=timezone.now())
    assert books.job("llama").unhealthy_since is not None
    assert health.check(timezone.now() + timedelta(seconds=31)) == 0
    assert (books.job("llama").unhealthy_since, books.job("llama").state) == (None, "Running")


def test_it_fails_and_holds_nothing_when_no_policy_moves_it(llama):
    restarts(llama, 3)
    assert health.check(timezone.now() + timedelta(seconds=599)) == 0
    assert health.check(timezone.now() + LATER) == 1
    job = books.job("llama")
    assert job.state == "Failed" and "llama-worker-0 has restarted 3 times" in job.reason["message"]
    assert [each.state for each in Work.objects.all()] == ["Withdrawing"]
    Pod.objects.all().delete()
    books.gone("llama")
    assert not Hold.objects.filter(released_at__isnull=True).exists()
    assert cause()[0] == "CodeError"


def test_a_copy_that_was_deleted_and_a_lost_cluster_are_causes_too(llama):
    JobEventHandler().on_delete(llama.cluster_id, books.resource("llama"), [books.copy("llama", {})], timezone.now())
    assert cause() == ("CopyRemoved", [])
