"""What would help, over REST: one story for each gate a job can stand at, and what readers of other namespaces learn."""

import pytest
import yaml
from django.utils import timezone

from fleet.models import Cluster, Grant, Hold
from jobs.models import Job
from jobs.services.submission import manifests, submit
from jobs.services.submission.changes import actions
from quotas.models import Queue
from quotas.services import queues, trees
from tests.jobs.api.explaining import explained, submitted
from tests.quotas.core.builders import JOBS, manifest, quota
from tests.support import books
from tests.support.books import GPU, a_cluster, team
from tests.support.people import client_of, person
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db


def a_tree(total: int, *children: dict) -> None:
    root = {GPU: total, "cpu": 10**6, "memory": 2**50}
    trees.apply(manifest(quota("root", root, root, *children)), by="system", now=timezone.now())


def of_vision(text: str) -> None:
    both = [yaml.safe_load(each) for each in (POLICY, text)]
    for each in both:
        each["metadata"]["namespace"] = "vision"
    submit.apply(manifests.parse(yaml.safe_dump_all(both).encode()), by="test", now=timezone.now())
    books.cycle()


def waiting(name: str, **fields) -> Job:
    """One that was looked at by the scheduler and stays."""
    books.apply(pytorch_job(name, workers=0, **fields))
    books.cycle()
    return books.job(name)


def told(client, job: Job) -> list[dict]:
    return explained(client, job)["changes"]


def kinds(client, job: Job) -> list[str]:
    return [change["kind"] for change in told(client, job)]


def test_it_makes_a_policy_for_a_job_without_one_whatever_the_clusters_hold(as_admin):
    a_cluster(gpus=2)
    policy = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: none}"
    job = submitted("orphan", policy, gpus=1)
    books.cycle()
    job.refresh_from_db()
    assert job.reason["code"] == "NoPolicy"
    [change] = told(as_admin, job)
    assert (change["kind"], change["allowed"], change["needs"]) == ("MakePolicy", True, "editor")


def test_it_names_the_jobs_that_hold_the_slots_and_none_of_another_queue(as_admin):
    a_cluster(gpus=8)
    a_tree(8, quota("a", {}, {GPU: 8, JOBS: 2}, namespaces=["default"]), team("b", 0, 8))
    for name in ("lora-a", "lora-b"):
        waiting(name)
    job = waiting("lora-c")
    assert job.reason["code"] == "MaxJobsReached"
    wait, raised = told(as_admin, job)
    assert (wait["kind"], wait["jobs"], wait["count"]) == ("WaitForJobs", ["default/lora-a", "default/lora-b"], 1)
    assert wait["message"] == "wait until 1 of these ends: default/lora-a, default/lora-b"
    assert (raised["kind"], raised["path"], raised["amounts"]) == ("RaiseQuota", "root/a", {JOBS: 3})


def test_it_tells_who_held_the_queue_when_and_why_and_who_may_open_it(as_admin):
    a_cluster()
    a_tree(8, team("a", 0, 8, namespaces=["default"]))
    queue = Queue.objects.get(path="root/a")
    queues.set_state(queue, Queue.State.HELD, by="ada", now=timezone.now(), comment="budget review")
    job = waiting("speech")
    assert job.reason["code"] == "QueueHeld"
    [change] = told(as_admin, job)
    assert (change["kind"], change["queue"], change["path"]) == ("OpenQueue", queue.name, "root/a")
    assert (change["by"], change["comment"], bool(change["at"])) == ("ada", "budget review", True)
    assert change["allowed"] and change["needs"] == "quota-admin"
    [other] = told(client_of(person("vic", (Grant.Role.VIEWER, "default"))), job)
    assert not other["allowed"]
    as_admin.post(f"/api/v1/queues/{queue.name}/open/", {}, format="json")
    books.cycle()
    assert books.job("speech").state == Job.State.PLACED


def test_it_names_who_borrows_and_no_limit_above_the_fleet(as_admin):
    a_cluster(gpus=8)
    a_tree(8, team("a", 2, 8, namespaces=["default"]), team("b", 2, 8, namespaces=["vision"]))
    of_vision(pytorch_job("borrower", workers=0, gpus=7))
    job = waiting("big", gpus=4)
    assert (job.reason["code"], job.reason["quota"]["path"]) == ("QuotaExceeded", "root")
    borrows, ends = told(as_admin, job)
    assert (borrows["kind"], borrows["path"], borrows["amounts"]) == ("ReturnBorrowed", "root/b", {GPU: 5})
    assert (ends["kind"], ends["jobs"]) == ("WaitForJobs", ["vision/borrower"])
    hidden = explained(client_of(person("vic", (Grant.Role.VIEWER, "default"))), job)
    assert "borrower" not in str(hidden)
    assert hidden["changes"][1]["held_by"] == [{"id": "", "name": "", "amounts": {GPU: 7}, "allowed": False}]


def seen_on(cluster: str, name: str) -> None:
    """The job's pod stands on the cluster's node, and nothing is held for it any more."""
    job, row = books.job(name), Cluster.objects.get(name=cluster)
    Hold.objects.filter(job_uid=job.uid).delete()
    pod = {
        "name": f"{name}-0",
        "namespace": job.namespace,
        "phase": "Running",
        "role": "master",
        "node": "node",
        "created_at": timezone.now(),
    }
    row.pods.create(uid=str(job.uid), job_uid=job.uid, attempt=1, **pod)
    row.nodes.update(requested=job.roles[0]["request"])
    Job.objects.filter(pk=job.pk).update(state=Job.State.RUNNING)


def two_of_other_sizes(large: int, *children: dict) -> None:
    """``large`` on north and ``small`` on south, which is too small for the job that waits."""
    a_cluster("north", gpus=8)
    a_cluster("south", gpus=3)
    a_tree(11, *children)
    of_vision(pytorch_job("large", workers=0, gpus=large))
    waiting("small", gpus=2)
    assert [books.job(name).cluster.name for name in ("large", "small")] == ["north", "south"]


def test_it_names_the_job_whose_end_frees_the_quota_and_a_cluster(as_admin):
    two_of_other_sizes(6, team("a", 0, 11, namespaces=["default"]), team("b", 0, 11, namespaces=["vision"]))
    seen_on("north", "large"), seen_on("south", "small")
    job = waiting("big", gpus=4)
    assert (job.reason["code"], job.reason["quota"]["path"]) == ("QuotaExceeded", "root")
    found = [change for change in told(as_admin, job) if change["kind"] == "WaitForJobs"]
    assert [change["jobs"] for change in found] == [["vision/large"]], "the end of small would free quota and no room"


def test_it_joins_the_end_that_frees_the_quota_and_the_one_that_frees_a_cluster(as_admin):
    two_of_other_sizes(5, team("a", 0, 5, namespaces=["default"]), team("b", 0, 11, namespaces=["vision"]))
    seen_on("north", "large"), seen_on("south", "small")
    job = waiting("big", gpus=4)
    assert (job.reason["code"], job.reason["quota"]["path"]) == ("QuotaExceeded", "root/a")
    both, raised = told(as_admin, job)
    assert [(step["kind"], step["jobs"]) for step in both["steps"]] == [
        ("WaitForJobs", ["default/small"]),
        ("WaitForJobs", ["vision/large"]),
    ]
    assert [(step["kind"], step["jobs"]) for step in raised["steps"]] == [
        ("RaiseQuota", []),
        ("WaitForJobs", ["vision/large"]),
    ]


def test_it_ends_as_few_jobs_as_suffice_where_they_hold_unlike_amounts(as_admin):
    a_cluster(gpus=16)
    a_tree(16, team("a", 2, 8, namespaces=["default"]))
    for name, gpus in (("small", 1), ("half", 3), ("large", 4)):
        waiting(name, gpus=gpus)
    job = waiting("next", gpus=3)
    ends, raised = told(as_admin, job)
    assert (ends["jobs"], ends["count"]) == (["default/half"], 1)
    assert (raised["path"], raised["amounts"]) == ("root/a", {GPU: 11})
    both = told(as_admin, waiting("larger", gpus=6))[0]
    assert (both["jobs"], both["count"]) == (["default/large", "default/half"], 2)


def test_it_joins_all_that_is_needed_where_quota_and_clusters_are_too_small_and_offers_the_smaller_ask(as_admin):
    a_cluster("north", gpus=32)
    a_cluster("south", gpus=16)
    a_tree(48, team("a", 4, 32, namespaces=["default"]))
    job = submitted("needs-48", workers=2, gpus=16)
    books.cycle()
    job.refresh_from_db()
    assert job.reason["code"] == "NeverFits"
    both, smaller = told(as_admin, job)
    assert both["kind"] == "AllOf"
    assert [(s["kind"], s["path"] or s["cluster"]) for s in both["steps"]] == [
        ("RaiseQuota", "root/a"),
        ("AddNodes", "north"),
    ]
    assert both["message"] == (
        "raise max of root/a to 48 nvidia.com/gpu and add 1 node with 32 nvidia.com/gpu to north"
    )
    assert (smaller["kind"], smaller["amounts"]) == ("LowerRequest", {GPU: 32})


def test_it_says_nothing_of_a_fleet_that_is_far_too_small_but_how_much_to_ask_for(as_admin):
    a_cluster(gpus=4)
    a_tree(4, team("a", 0, 4, namespaces=["default"]))
    job = submitted("giant", workers=63, gpus=8)
    books.cycle()
    job.refresh_from_db()
    found = told(as_admin, job)
    assert [change["kind"] for change in found] == ["LowerRequest"] and found[0]["amounts"] == {GPU: 4}


def test_it_points_at_the_job_that_holds_up_the_queue(as_admin):
    a_cluster(gpus=4)
    a_tree(4, team("a", 0, 4, namespaces=["default"], attributes={"queue-policy": "Block"}))
    for name, gpus in (("runs", 2), ("big", 4)):
        waiting(name, gpus=gpus)
    job = waiting("small", gpus=1)
    assert job.reason["code"] == "BehindInQueue"
    [change] = told(as_admin, job)
    assert (change["kind"], change["jobs"]) == ("LookAtJob", ["default/big"])
    assert change["held_by"][0]["id"] == str(books.job("big").uid)


def test_it_lists_a_namespace_that_has_no_quota(as_admin):
    a_cluster()
    a_tree(8, team("b", 0, 8, namespaces=["vision"]))
    job = submitted("llama", POLICY.replace("spec:\n", "spec:\n  suspension: {scheduling: true}\n", 1))
    books.cycle()
    job.refresh_from_db()
    assert job.reason["code"] == "NoQuotaForNamespace"
    [change] = told(as_admin, job)
    assert (change["kind"], change["needs"]) == ("AddNamespace", "quota-admin")


def test_it_resumes_a_suspended_job_and_says_who_may(as_admin):
    a_cluster()
    job = submitted("llama")
    actions.suspend(job, by="test", now=timezone.now())
    job.refresh_from_db()
    assert kinds(as_admin, job) == ["Resume"]
    [change] = told(client_of(person("vic", (Grant.Role.VIEWER, "default"))), job)
    assert (change["allowed"], change["needs"]) == (False, "editor")


def test_it_joins_a_cluster_to_a_fleet_without_any(as_admin):
    assert kinds(as_admin, waiting("llama")) == ["JoinCluster"]


def test_it_brings_back_the_cluster_that_is_silent_and_would_hold_it(as_admin):
    a_cluster()
    Cluster.objects.update(state=Cluster.State.UNKNOWN)
    [change] = told(as_admin, waiting("llama"))
    assert (change["kind"], change["cluster"]) == ("RestoreCluster", "north")


def test_it_gives_no_advice_where_a_cluster_fits_and_its_turn_is_all_that_is_missing(as_admin):
    a_cluster(gpus=8)
    a_cluster("small", gpus=1)
    assert told(as_admin, submitted("llama")) == []


def test_it_tells_the_numbers_of_the_empty_cluster_when_it_says_even_when_empty(as_admin):
    north = a_cluster("north", gpus=32)
    north.nodes.update(requested={GPU: 28, "pods": 1})
    job = submitted("needs-48", workers=2, gpus=16)
    [verdict] = explained(as_admin, job)["clusters"]
    assert (verdict["never_fits"], verdict["missing"]) == (True, {GPU: 16})
    assert "holds" in verdict["message"] or "has 32 nvidia.com/gpu" in verdict["message"]
    assert "free" not in verdict["message"] and "even when empty" in verdict["message"]
