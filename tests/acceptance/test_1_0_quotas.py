"""1.0: the quota tree of the fleet and its queues, statements 2 to 8, 10 and 20; where they say `fl`, it is kubectl."""

import re

import pytest
import yaml
from django.utils import timezone

from jobs.models import Job
from quotas.models import Queue
from quotas.services import queues
from tests.quotas.core.builders import manifest, quota
from tests.support import books
from tests.support.amc import cells
from tests.support.kubectl import served
from tests.support.quotas import GPU, JOBS, PLENTY, apply_tree, gpus, leaf
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
SUSPENDED = POLICY.replace("  propagateDeps: true", "  propagateDeps: true\n  suspension: {scheduling: true}")
LABEL = "quota.scheduling.alibabacloud.com/name"


def job(name: str, gpu: int, queue: str = "", priority: int = 0) -> str:
    """A job of one pod."""
    made = yaml.safe_load(pytorch_job(name, workers=0, gpus=gpu, duration="10h"))
    made["metadata"] |= {"labels": {LABEL: queue} if queue else {}}
    if priority:
        made["metadata"]["annotations"] = {"convoy.dev/priority": str(priority)}
    return yaml.safe_dump(made)


def turn(leaf_name: str, state: Queue.State) -> None:
    queues.set_state(Queue.objects.get(path=f"root/{leaf_name}"), state, by="system", now=timezone.now())


def states() -> dict[str, str]:
    return dict(Job.objects.values_list("name", "state"))


def codes() -> dict[str, str]:
    return {row.name: (row.reason or {}).get("code", "") for row in Job.objects.all()}


def test_1_0_2_a_second_tree_or_one_elsewhere_is_refused_with_a_reason(admin, tmp_path):
    apply_tree(leaf("a"))
    with served(tmp_path) as door:
        ada = door.as_user("ada")
        elsewhere, second = (
            ada.refused("apply", "-f", "-", given=yaml.safe_dump(manifest(quota("root", PLENTY, PLENTY), *place)))
            for place in (("tree", "default"), ("other", "kube-system"))
        )
    assert "metadata.namespace" in elsewhere and "kube-system" in elsewhere
    assert "tree" in second and Queue.objects.filter(path="root/a").exists()


def test_1_0_3_a_root_whose_min_is_not_its_max_is_refused_and_one_that_is_is_accepted(admin, tmp_path):
    uneven = manifest(quota("root", {**PLENTY, GPU: 999}, PLENTY), "tree", "kube-system")
    with served(tmp_path) as door:
        refused = door.as_user("ada").refused("apply", "-f", "-", given=yaml.safe_dump(uneven))
    assert "root must have the same min and max" in refused and f"999 {GPU}" in refused
    apply_tree(leaf("a", max={"cpu": 8, "memory": "8Gi", GPU: 8, JOBS: 2}))
    assert Queue.objects.count() == 2


def test_1_0_4_get_queue_prints_a_row_for_each_node_named_after_its_path(admin, tmp_path):
    apply_tree(leaf("child-2", "default"))
    with served(tmp_path) as door:
        header, *rows = cells(door.as_user("ada").says("get", "queue", "-n", "kube-queue"))
    assert header == ["NAME", "AGE"]
    assert sorted(re.sub(r"-[a-z0-9]{5}$", "", name) for name, _ in rows) == ["root", "root-child-2"]


def test_1_0_5_a_job_queues_and_is_charged_in_the_leaf_of_its_namespace(world, admin, tmp_path):
    world.member("north", 8)
    apply_tree(leaf("child-2", "default"), leaf("other", "vision"))
    with served(tmp_path) as door:
        ada = door.as_user("ada")
        ada.says("apply", "-f", "-", given=f"{POLICY}---\n{job('llama', 3)}")
        world.expect("llama", "Running")
        [unit] = yaml.safe_load(ada.says("get", "queueunits", "-o", "yaml"))["items"]
    assert unit["spec"]["queue"] == "root/child-2"
    assert [books.used(f"root/{name}").get(GPU, 0) for name in ("child-2", "other")] == [3, 0]


@pytest.mark.parametrize(("outside", "state"), [("", "Queued"), ("Run", "Running")], ids=["stating nothing", "Run"])
def test_1_0_5_a_job_of_a_namespace_in_no_leaf_waits_with_the_reason_unless_the_tree_lets_it_run(world, outside, state):
    world.member("north", 8)
    apply_tree(leaf("child-2", "vision"), attributes={"outside-jobs": outside} if outside else None)
    world.apply(POLICY, job("llama", 1))
    told = {"Queued": "NoQuotaForNamespace", "Running": ""}[state]
    world.until(lambda: (states()["llama"], codes()["llama"]) == (state, told), f"it is {state}")
    assert world.copies() == {"north": ["llama"] if state == "Running" else []}
    assert books.used("root").get(GPU, 0) == 0


def test_1_0_5_a_namespace_in_two_leaves_is_refused_with_its_field(admin, tmp_path):
    tree = manifest(quota("root", PLENTY, PLENTY, leaf("a", "default"), leaf("b", "default")), "tree", "kube-system")
    with served(tmp_path) as door:
        refused = door.as_user("ada").refused("apply", "-f", "-", given=yaml.safe_dump(tree))
    assert "spec.root.children[1].namespaces[0]" in refused and "default is in root/a already" in refused
    assert not Queue.objects.exists()


@pytest.mark.parametrize("ends", ["finishing", "deleting", "suspending"])
def test_1_0_6_with_max_jobs_1_one_of_two_runs_and_its_end_releases_the_other(world, ends):
    world.member("north", 8)
    apply_tree(leaf("child-2", "default", max={JOBS: 1}))
    duration = "40s" if ends == "finishing" else "10h"
    world.apply(POLICY, pytorch_job("first", duration=duration), pytorch_job("second", duration="10h"))
    world.expect("first", "Running")
    assert world.job("second").state == "Queued"
    if ends == "deleting":
        world.delete("first")
    elif ends == "suspending":
        world.suspend("first")
    world.expect("second", "Running")


def test_1_0_7_of_jobs_of_4_4_and_4_under_max_8_two_run_and_the_third_is_told_the_numbers(world):
    world.member("north", 8, 8)
    apply_tree(leaf("team", "default", max={GPU: 8}))
    world.apply(POLICY, *(job(name, 4) for name in ("a", "b", "c")))
    world.until(lambda: sorted(states().values()) == ["Queued", "Running", "Running"], "two run")
    world.until(lambda: "QuotaExceeded" in codes().values(), "the third is told")
    said = Job.objects.get(state="Queued").reason["quota"]
    told = {key: said[key] for key in ("path", "resource", "used", "asked", "max")}
    assert told == {"path": "root/team", "resource": GPU, "used": 8, "asked": 4, "max": 8}


def test_1_0_8_a_queue_takes_back_up_to_its_min_from_who_started_last_and_never_below_a_min(world):
    world.member("north", 8)
    apply_tree(leaf("a", **gpus(4, 8)), leaf("b", **gpus(4, 8)), total={**PLENTY, GPU: 8})
    for name in ("old", "young"):
        world.apply(POLICY, job(name, 4, "b"))
        world.expect(name, "Running")
    world.apply(job("mine", 4, "a"))
    world.expect("mine", "Running")
    assert (world.job("old").state, world.job("young").state) == ("Running", "Queued")
    world.apply(job("more", 4, "a"))
    world.until(lambda: codes()["more"] == "QuotaExceeded", "b keeps its min")
    assert world.job("old").attempt == 1


def test_1_0_10_a_job_of_a_suspended_policy_takes_its_place_in_the_queue_and_waits_for_its_release(world, as_admin):
    world.member("north", 8)
    apply_tree(leaf("child-2", "default"))
    turn("child-2", Queue.State.HELD)
    world.apply(SUSPENDED, job("waits", 1))
    world.until(lambda: codes() == {"waits": "QueueHeld"}, "it is held back")
    [unit] = as_admin.get("/api/v1/queueunits/").json()["results"]
    assert (unit["queue"], unit["position"]) == ("root/child-2", 1)
    assert states() == {"waits": "Queued"} and not world.pods("north")
    turn("child-2", Queue.State.OPEN)
    world.expect("waits", "Running")


def test_1_0_10_without_suspension_a_job_is_scheduled_at_once_and_with_it_nowhere_without_a_queue(world):
    world.member("north", 8)
    world.apply(POLICY, job("goes", 1))
    world.expect("goes", "Running")
    world.apply(SUSPENDED, job("waits", 1))
    world.until(lambda: codes()["waits"] == "SchedulingSuspended", "it is held back")


def test_1_0_20_a_queue_goes_by_priority_then_time_and_shows_each_its_position(world, admin, tmp_path, convoy):
    world.member("north", 8)
    apply_tree(leaf("team", "default", max={JOBS: 1}))
    world.apply(POLICY, job("runs", 1))
    world.expect("runs", "Running")
    for name, urgency in (("first", 0), ("second", 0), ("urgent", 5)):
        world.apply(job(name, 1, priority=urgency))
    with served(tmp_path) as door:
        header, *rows = cells(door.as_user("ada").says("get", "queueunits", "-o", "wide"))
    where = header.index("POSITION")
    line = sorted((row[where], row[0].removesuffix("-pytorchjob")) for row in rows if row[where].isdigit())
    assert line == [("1", "urgent"), ("2", "first"), ("3", "second")]
    [team] = [row[0] for row in cells(convoy("get", "queue").out) if row[0].startswith("root-team-")]
    shown = cells(convoy("get", "queue", team, "-o", "wide").out)
    assert shown[0][:2] == ["POSITION", "JOB"]
    assert [row[:2] for row in shown[1:] if row[0].isdigit()] == [[at, f"default/{name}"] for at, name in line]
    world.delete("runs")
    world.expect("urgent", "Running")


@pytest.mark.parametrize(("policy", "small"), [("Block", "Queued"), ("Priority", "Running")], ids=["strict", "fair"])
def test_1_0_20_strictly_nobody_passes_a_head_that_does_not_fit_and_fairly_who_fits_goes_on(world, policy, small):
    world.member("north", 8)
    apply_tree(leaf("team", "default", attributes={"queue-policy": policy}, **gpus(0, 4)))
    world.apply(POLICY, job("runs", 3))
    world.expect("runs", "Running")
    world.apply(job("head", 4), job("small", 1))
    told = {"Queued": "BehindInQueue", "Running": ""}[small]
    world.until(lambda: (states()["small"], codes()["small"]) == (small, told), f"it is {small}")
    assert (states()["head"], codes()["head"]) == ("Queued", "QuotaExceeded")
