"""Jobs that belong to no leaf wait unless the tree says that they run; no edit lets those that wait start beside the quota."""

import pytest
from django.utils import timezone

from fleet.errors import Conflict
from jobs.core.failover.rules import Outcome
from jobs.core.reasons import Code, Reason
from jobs.models import Job, Work
from jobs.services.failover import failover
from jobs.services.submission import manifests, submit
from jobs.services.submission.changes import actions
from quotas.models import QuotaTree
from quotas.services import previews, trees, usage
from tests.quotas.core.builders import manifest, quota
from tests.support import books
from tests.support.books import GPU, team
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db
WHOLE = {"cpu": 10**5, "memory": "900000Gi", GPU: 8, "kube-queue/max-jobs": 1000}


def a_tree(*leaves: dict, outside: str = "") -> dict:
    stated = {"attributes": {"outside-jobs": outside}} if outside else {}
    return manifest(quota("root", WHOLE, WHOLE, *leaves, **stated))


def apply(tree: dict) -> None:
    trees.apply(tree, by="system", now=timezone.now())


def waiting_in_a_full_leaf(outside: str = "") -> None:
    books.a_cluster(gpus=64)
    apply(a_tree(team("a", 0, 0, namespaces=["default"]), team("b", 0, 8), outside=outside))
    books.apply(*(pytorch_job(f"w{i}", workers=0) for i in range(5)))
    books.cycle()
    assert set(Job.objects.values_list("state", flat=True)) == {"Queued"}


def states() -> set[str]:
    books.cycle()
    return set(Job.objects.values_list("state", flat=True))


def test_it_refuses_to_drop_a_leaf_by_which_jobs_wait_and_says_what_to_state():
    waiting_in_a_full_leaf()
    with pytest.raises(Conflict, match=r"5 waiting jobs would belong to no leaf: default/w0.*outside-jobs: Wait"):
        apply(a_tree(team("b", 0, 8)))
    [refusal] = previews.of_manifest(a_tree(team("b", 0, 8)), by="system", now=timezone.now()).refusals
    assert "outside-jobs" in refusal and states() == {"Queued"}


@pytest.mark.parametrize(("choice", "after"), [("Wait", "Queued"), ("Run", "Placed")])
def test_it_drops_the_leaf_where_the_tree_says_what_becomes_of_its_jobs(choice, after):
    waiting_in_a_full_leaf()
    apply(a_tree(team("b", 0, 8), outside=choice))
    assert states() == {after}
    if choice == "Wait":
        assert {job.reason["code"] for job in Job.objects.all()} == {"NoQuotaForNamespace"}


@pytest.mark.parametrize("stated", ["", "Wait"])
def test_it_refuses_to_delete_a_tree_by_which_jobs_wait(stated):
    waiting_in_a_full_leaf(stated)
    with pytest.raises(Conflict, match="5 waiting jobs"):
        trees.delete("tree", by="system", now=timezone.now())
    assert QuotaTree.objects.exists() and states() == {"Queued"}


def test_it_deletes_a_tree_by_which_jobs_wait_where_it_says_that_jobs_outside_it_run():
    waiting_in_a_full_leaf("Run")
    trees.delete("tree", by="system", now=timezone.now())
    assert states() == {"Placed"}


def test_it_lets_what_runs_outside_run_on_when_the_first_tree_says_that_such_jobs_wait():
    books.a_cluster(gpus=64)
    books.apply(pytorch_job("runs", workers=0))
    books.cycle()
    apply(a_tree(team("a", 0, 8), outside="Wait"))
    books.apply(pytorch_job("comes", workers=0))
    books.cycle()
    assert (books.job("runs").state, books.job("comes").state) == ("Placed", "Queued")
    assert books.job("comes").reason["code"] == "NoQuotaForNamespace"


def test_it_takes_the_choice_at_the_root_alone_and_only_one_it_knows():
    for tree in (
        a_tree(team("a", 0, 8), outside="Perhaps"),
        a_tree(team("a", 0, 8, attributes={"outside-jobs": "Wait"})),
    ):
        with pytest.raises(Exception, match="outside-jobs"):
            apply(tree)


def runs_and_waits(outside: str = "") -> None:
    """One job of 2 GPUs ran before the first tree, which lists another namespace; one came after it."""
    books.a_cluster(gpus=64)
    books.apply(pytorch_job("runs", workers=1))
    books.cycle()
    apply(a_tree(team("a", 0, 8), outside=outside))
    books.apply(pytorch_job("comes", workers=0))
    books.cycle()


def test_jobs_outside_a_tree_wait_where_it_states_nothing_and_are_told_what_to_do():
    runs_and_waits()
    assert (books.job("runs").state, books.job("comes").state) == ("Placed", "Queued")
    reason = books.job("comes").reason
    assert reason["code"] == "NoQuotaForNamespace"
    assert "list the namespace at a leaf" in reason["message"] and "outside-jobs: Run" in reason["message"]


def test_jobs_outside_a_tree_run_where_it_states_so():
    runs_and_waits("Run")
    assert {job.state for job in Job.objects.all()} == {"Placed"}


def test_it_warns_at_submit_that_a_job_outside_the_tree_waits():
    books.a_cluster()
    for outside, warned in (("", True), ("Wait", True), ("Run", False)):
        apply(a_tree(team("a", 0, 8), outside=outside))
        [applied] = submit.apply(
            manifests.parse(pytorch_job(f"new{outside.lower()}").encode()), by="test", now=timezone.now()
        )
        assert any("NoQuotaForNamespace" in each for each in applied.warnings) is warned


def test_the_first_tree_over_running_jobs_of_other_namespaces_is_applied_in_one_step_and_shows_the_choice():
    books.a_cluster(gpus=64)
    books.apply(pytorch_job("runs", workers=1))
    books.cycle()
    books.apply(*(pytorch_job(f"w{i}", workers=0) for i in range(3)))
    tree = a_tree(team("a", 0, 8))
    preview = previews.of_manifest(tree, by="system", now=timezone.now())
    applied = trees.apply(tree, by="system", now=timezone.now())
    for warnings in (preview.warnings, applied.warnings):
        [warning] = warnings
        assert "1 running jobs outside the tree stay, with 2 GPUs" in warning
        assert "3 waiting jobs would wait" in warning and "outside-jobs: Run" in warning
    assert preview.saves and preview.outside == usage.Outside(running=1, waiting=3, gpus=2)
    stated = a_tree(team("a", 0, 8), outside="Run")
    assert trees.apply(stated, by="system", now=timezone.now()).warnings == ()


def test_a_tree_that_lists_every_namespace_has_nothing_outside_it():
    waiting_in_a_full_leaf()
    listed = a_tree(team("a", 0, 8, namespaces=["default"]), team("b", 0, 8))
    preview = previews.of_manifest(listed, by="system", now=timezone.now())
    assert preview.warnings == [] and preview.outside == usage.Outside()


def fails_over(job: Job) -> None:
    failover.leave(job, Outcome.FAILED, Reason(Code.WAITING_FOR_PODS, "north did not run all pods"), timezone.now())


def is_suspended_and_resumed(job: Job) -> None:
    actions.suspend(job, by="system", now=timezone.now())
    books.gone(job.name)
    for work in Work.objects.filter(job_uid=job.uid):
        failover.after_removal(work, timezone.now())
    actions.resume(books.job(job.name), by="system", now=timezone.now())


@pytest.mark.parametrize("leaves", [fails_over, is_suspended_and_resumed])
def test_a_job_that_ran_outside_the_tree_waits_when_it_left_its_cluster_and_says_what_to_do(leaves):
    runs_and_waits()
    books.sent()
    books.report("runs", "Running")
    leaves(books.job("runs"))
    books.gone("runs")
    books.cycle()
    job = books.job("runs")
    assert job.state in Job.WAITING
    assert job.reason["code"] == "NoQuotaForNamespace" and "outside-jobs: Run" in job.reason["message"]
    books.a_cluster("south")
    apply(a_tree(team("a", 0, 8, namespaces=["default"])))
    assert states() == {"Placed"}


def test_it_refuses_to_delete_a_tree_for_which_jobs_outside_it_wait():
    runs_and_waits()
    with pytest.raises(Conflict, match="1 waiting jobs"):
        trees.delete("tree", by="system", now=timezone.now())
    apply(a_tree(team("a", 0, 8), outside="Run"))
    trees.delete("tree", by="system", now=timezone.now())
    assert states() == {"Placed"}
