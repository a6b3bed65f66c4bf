"""Jobs that stand in their queue again while the copy they left on a lost cluster may still run (invariant I5)."""

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.core.members import marks
from fleet.models import Cluster, Event, Hold, Identity, JournalEntry
from fleet.services.clusters import clusters
from jobs.core.failover.rules import Outcome, PurgeMode
from jobs.core.reasons import Code, Reason
from jobs.models import Attempt, Job, Work
from jobs.services.failover import failover
from jobs.services.follow import member_copies, sweep
from jobs.services.follow.status import JobEventHandler
from jobs.services.follow.timeouts import health
from jobs.services.scheduling.decisions import preemption
from jobs.services.submission.changes import actions
from quotas.models import Queue
from tests.jobs.services.lost_cluster import THROUGH_QUEUE, a_fleet, cycle, north, running
from tests.support import books, laws
from tests.support.books import GPU
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db


@pytest.fixture(params=[THROUGH_QUEUE, POLICY], ids=["queue", "plain"])
def policy(request):
    return request.param


def lost(policy: str = THROUGH_QUEUE) -> Job:
    running(policy)
    north(Cluster.State.UNKNOWN)
    assert health.check(timezone.now() + timedelta(minutes=2)) == 1
    return books.job("llama")


def works() -> dict[int, str]:
    return dict(Work.objects.values_list("attempt", "state"))


def hold_queues(state: str = Queue.State.HELD) -> None:
    Queue.objects.update(state=state)


def test_it_keeps_the_copy_of_a_lost_cluster_until_its_replacement_has_a_place(policy):
    job = lost(policy)
    assert (job.state, works()) == ("Queued" if "suspension" in policy else "Moving", {1: "Applied"})
    assert Hold.objects.get().released_at is None and books.used("root/a")[GPU] == 3
    books.a_cluster("south", gpus=3)
    assert cycle() == 1
    assert works() == {1: "Withdrawing", 2: "Pending"} and books.used("root/a")[GPU] == 3


def test_it_adopts_the_copy_that_runs_on_when_its_member_reports_it(policy):
    lost(policy)
    north(Cluster.State.READY)
    books.report("llama", "Running")
    job = books.job("llama")
    assert (job.state, job.attempt, str(job.cluster), job.reason) == ("Running", 1, "north", None)
    attempt = Attempt.objects.get()
    assert works() == {1: "Applied"} and attempt.outcome == "" and attempt.left_at and attempt.returned_at
    assert Event.objects.filter(reason="StaysOnCluster").count() == 1


@pytest.mark.parametrize("drained", [False, True])
def test_only_a_job_that_left_because_its_cluster_was_silent_is_one_that_returned(drained):
    running()
    north(Cluster.State.UNKNOWN)
    row = Cluster.objects.get(name="north")
    if drained:
        clusters.drain(row, by="ann", now=timezone.now())
    assert health.check(timezone.now() + timedelta(minutes=2)) == 1
    if drained:
        clusters.reopen(row, by="ann", now=timezone.now())
    north(Cluster.State.READY)
    books.report("llama", "Running")
    attempt = Attempt.objects.get()
    assert (attempt.outcome, books.job("llama").state) == ("", "Running")
    assert (bool(attempt.left_at), bool(attempt.returned_at)) == (not drained, not drained)


def test_a_success_after_all_is_no_return():
    lost()
    north(Cluster.State.READY)
    books.report("llama", "Succeeded")
    assert books.job("llama").state == "Succeeded" and Attempt.objects.get().returned_at is None


def test_clients_that_watch_see_its_return_though_its_status_is_the_same(policy):
    before = lost(policy)
    north(Cluster.State.READY)
    books.report("llama", "Running")
    returned = books.job("llama")
    assert (returned.state, returned.status) == ("Running", before.status)
    lines = JournalEntry.objects.filter(object_uid=returned.uid, version__gt=before.resource_version)
    assert returned.resource_version in lines.values_list("version", flat=True)


def test_it_adopts_it_though_the_member_has_nothing_new_to_report(policy):
    lost(policy)
    north(Cluster.State.READY)
    sweep.cluster_changed(Cluster.objects.get().pk, timezone.now())
    assert (books.job("llama").state, books.job("llama").attempt) == ("Running", 1)


def test_it_adopts_it_rather_than_places_the_job_where_it_runs(policy):
    lost(policy)
    Cluster.objects.get().nodes.update(allocatable={"cpu": 10**6, "memory": 2**50, GPU: 9, "pods": 99})
    north(Cluster.State.READY)
    assert cycle() == 0
    assert (books.job("llama").state, books.job("llama").attempt, works()) == ("Running", 1, {1: "Applied"})


def test_it_believes_a_copy_that_has_succeeded_meanwhile(policy):
    lost(policy)
    north(Cluster.State.READY)
    books.report("llama", "Succeeded")
    job = books.job("llama")
    assert (job.state, job.attempt, job.charge) == ("Succeeded", 1, None)
    assert Attempt.objects.get().outcome == "Succeeded"
    laws.terminal_holds_nothing()


def test_it_believes_a_success_whatever_the_job_left_for(policy):
    job = running(policy)
    slow = Reason(Code.WAITING_FOR_PODS, "north did not run all pods")
    failover.leave(job, Outcome.FAILED, slow, timezone.now())
    books.report("llama", "Running")
    assert books.job("llama").state in Job.WAITING
    books.report("llama", "Succeeded")
    assert books.job("llama").state == "Succeeded"


def test_it_adopts_nothing_of_a_cluster_that_is_to_be_left_still(policy):
    lost(policy)
    drained = {
        "key": "convoy.dev/drained",
        "value": "",
        "effect": "NoExecute",
        "timeAdded": "2020-01-01T00:00:00+00:00",
    }
    Cluster.objects.update(state=Cluster.State.READY, taints=[drained])
    books.report("llama", "Running")
    assert books.job("llama").state in Job.WAITING
    sweep.run(timezone.now())
    assert books.job("llama").state in Job.WAITING and not Event.objects.filter(reason="StaysOnCluster").exists()


@pytest.mark.parametrize(
    ("condition", "report"),
    [("Running", "on_update"), ("Restarting", "on_update"), ("Failed", "on_update"), ("Failed", "on_delete")],
)
def test_a_report_of_the_former_attempt_says_nothing_of_the_current_one(policy, condition, report):
    lost(policy)
    former = books.copy("llama", {"conditions": [{"type": condition, "status": "True"}]})
    books.a_cluster("south", gpus=3)
    assert cycle() == 1
    books.sent()
    Job.objects.update(state="Dispatched")
    north(Cluster.State.READY)
    where = Cluster.objects.get(name="north").pk
    getattr(JobEventHandler(), report)(where, books.resource("llama"), [former], timezone.now())
    job = books.job("llama")
    assert (job.state, job.attempt, str(job.cluster), job.unhealthy_since) == ("Dispatched", 2, "south", None)
    assert job.status != former["status"] and works() == {1: "Withdrawing", 2: "Applied"}


def test_a_former_attempt_whose_copy_is_missing_moves_nobody(policy):
    lost(policy)
    books.a_cluster("south", gpus=3)
    assert cycle() == 1
    Work.objects.update(state="Applied")
    Job.objects.update(state="Dispatched")
    job, where = books.job("llama"), Cluster.objects.get(name="north").pk
    JobEventHandler().on_resync(where, books.resource("llama"), [(job.uid, 1)], timezone.now())
    assert (books.job("llama").state, books.job("llama").attempt) == ("Dispatched", 2)
    assert Attempt.objects.get(number=2).outcome == ""


def test_a_copy_that_is_missing_while_it_is_being_removed_was_deleted_by_nobody_else(policy):
    job = running(policy)
    later = timezone.now() + timedelta(minutes=5)
    Work.objects.update(state="Withdrawing", due_at=later)
    JobEventHandler().on_resync(Cluster.objects.get().pk, books.resource("llama"), [(job.uid, 1)], timezone.now())
    assert (books.job("llama").state, Attempt.objects.get().outcome) == ("Running", "")
    assert works() == {1: "Withdrawing"} and Work.objects.get().due_at < later


def test_a_decision_about_the_former_attempt_moves_nobody(policy):
    """Of a process that has read the job before it moved."""
    running(policy)
    before = books.job("llama")
    north(Cluster.State.UNKNOWN)
    lost = Reason(Code.CLUSTER_LOST, "gone")
    assert failover.leave(books.job("llama"), Outcome.LOST, lost, timezone.now())
    books.a_cluster("south", gpus=3)
    assert cycle() == 1
    assert not failover.leave(before, Outcome.LOST, lost, timezone.now())
    assert (books.job("llama").state, books.job("llama").attempt) == ("Placed", 2)
    assert list(Attempt.objects.order_by("number").values_list("outcome", flat=True)) == ["Lost", ""]


def test_a_copy_that_is_reported_after_its_removal_was_recorded_is_removed_again(policy):
    """A worker that was paused may have created it, or its member was restored."""
    lost(policy)
    Work.objects.update(state="Gone")
    north(Cluster.State.READY)
    copy = books.copy("llama", {"conditions": [{"type": "Running", "status": "True"}]})
    copy["metadata"]["labels"][marks.FLEET] = Identity.here()
    JobEventHandler().on_update(Cluster.objects.get().pk, books.resource("llama"), [copy], timezone.now())
    assert books.job("llama").state in Job.WAITING and works() == {1: "Withdrawing"}


@pytest.mark.parametrize("metadata", [{"labels": "another fleet"}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}])
def test_a_copy_of_another_fleet_or_one_that_goes_already_is_not_removed(policy, metadata):
    lost(policy)
    Work.objects.update(state="Gone")
    copy = books.copy("llama", {"conditions": [{"type": "Running", "status": "True"}]})
    copy["metadata"]["labels"][marks.FLEET] = metadata.get("labels") or Identity.here()
    copy["metadata"]["deletionTimestamp"] = metadata.get("deletionTimestamp")
    job, where = books.job("llama"), Cluster.objects.get().pk
    member_copies.remove(where, books.resource("llama"), copy, job.uid, job.attempt, timezone.now())
    assert works() == {1: "Gone"}


def test_it_lets_nobody_start_anew_through_a_queue_that_is_held_but_adopts_what_runs():
    lost()
    hold_queues()
    books.a_cluster("south", gpus=3)
    assert cycle() == 0
    job = books.job("llama")
    assert (job.state, job.reason["code"], works()) == ("Queued", "QueueHeld", {1: "Applied"})
    north(Cluster.State.READY)
    books.report("llama", "Running")
    assert books.job("llama").state == "Running"


def test_it_goes_on_moving_without_its_queue_when_the_policy_asks_none():
    lost(POLICY)
    hold_queues()
    books.a_cluster("south", gpus=3)
    assert cycle() == 1


def test_it_takes_back_the_quota_of_a_job_that_waits_for_a_lost_cluster():
    """Borrowed quota must not be out of reach of its owner because its borrower is out of reach."""
    lost()
    books.a_cluster("south", gpus=0)
    Cluster.objects.get(name="south").nodes.update(allocatable={"cpu": 10**6, "memory": 2**50, GPU: 9, "pods": 99})
    hold_queues()
    Queue.objects.filter(path="root/b").update(state=Queue.State.OPEN)
    Queue.objects.filter(path="root").update(state=Queue.State.OPEN)
    preemptor = pytorch_job("owner", gpus=3).replace("name: owner", "name: owner\n  namespace: vision")
    cluster_policy = THROUGH_QUEUE.replace("kind: PropagationPolicy", "kind: ClusterPropagationPolicy")
    books.apply(cluster_policy.replace("example-policy", "all"), preemptor)
    cycle()
    assert books.job("llama").state == "Reclaiming", (books.job("llama").state, books.job("owner").reason)
    later = timezone.now() + timedelta(minutes=2)
    preemption.advance(later)
    assert books.job("llama").charge is None and books.job("llama").state == "Queued"
    assert works()[1] == "Suspending"


@pytest.mark.parametrize("verb", ["suspend", "delete"])
def test_it_can_be_suspended_and_deleted_meanwhile(policy, verb):
    lost(policy)
    getattr(actions, verb)(books.job("llama"), by="ada", now=timezone.now())
    north(Cluster.State.READY)
    books.report("llama", "Running")
    assert works() == {1: "Suspending" if verb == "suspend" else "Withdrawing"}
    assert not Job.objects.filter(state="Running", deleting_at__isnull=True).exists()
    if verb == "delete":
        laws.remove_copies()
        assert not Job.objects.exists() and books.used("root/a")[GPU] == 0


def test_it_resumes_in_its_queue_and_not_by_the_copy_of_a_lost_cluster(policy):
    lost(policy)
    actions.suspend(books.job("llama"), by="ada", now=timezone.now())
    actions.resume(books.job("llama"), by="ada", now=timezone.now())
    north(Cluster.State.READY)
    books.report("llama", "Running")
    assert books.job("llama").state == "Queued" and works() == {1: "Withdrawing"}


def test_it_frees_the_quota_of_a_copy_that_failed_or_vanished_while_its_job_stood_in_the_queue():
    lost()
    north(Cluster.State.READY)
    books.report("llama", "Failed")
    assert works() == {1: "Withdrawing"}
    laws.remove_copies()
    assert books.job("llama").charge is None and books.job("llama").state == "Queued"


def test_it_hears_that_the_copy_was_deleted_while_its_job_waits(policy):
    lost(policy)
    where = Cluster.objects.get().pk
    JobEventHandler().on_delete(where, books.resource("llama"), [books.copy("llama", {})], timezone.now())
    assert works() == {1: "Withdrawing"} and books.job("llama").state in Job.WAITING


def test_it_purges_at_once_only_when_the_policy_says_directly(policy):
    job = running(policy)
    failover.leave(job, Outcome.LOST, Reason(Code.CLUSTER_LOST, "gone"), timezone.now(), purge=PurgeMode.DIRECTLY)
    assert works() == {1: "Withdrawing"}


def test_it_keeps_for_a_person_what_the_policy_says_never_to_purge(policy):
    running(policy)
    books.report("llama", "Failed") if "failover" in policy else Job.objects.update(state="Backoff")
    failover.leave(
        books.job("llama"), Outcome.FAILED, Reason(Code.FAILED, "exit 1"), timezone.now(), purge=PurgeMode.NEVER
    )
    assert works() == {1: "Kept"} and Hold.objects.get().released_at is not None


def test_it_removes_at_once_a_failed_copy_whose_job_stands_in_the_queue():
    running()
    books.report("llama", "Failed")
    assert health.check(timezone.now() + timedelta(minutes=2)) == 1
    assert (books.job("llama").state, works()) == ("Queued", {1: "Withdrawing"})


def test_it_forgets_a_copy_that_was_never_sent(policy):
    a_fleet()
    books.apply(policy, pytorch_job("llama"))
    cycle()
    north(Cluster.State.UNKNOWN)
    assert health.check(timezone.now() + timedelta(minutes=2)) == 1
    assert works() == {1: "Gone"} and Hold.objects.get().released_at is not None
