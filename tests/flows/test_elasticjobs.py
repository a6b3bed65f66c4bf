"""ElasticJobs against an operator that plays DLRover's by its real rules: suspended and preempted jobs stop, and come back."""

from pathlib import Path

import pytest
import yaml
from django.utils import timezone

from fleet.models import Event, Pod
from fleet.services.clusters import clusters
from jobs.models import Work
from jobs.services.submission.changes import actions
from simulator.controller_manager import Shape
from simulator.fault_parser import Fault
from simulator.member import SimulatedMember
from tests.support.isolation import needs_isolation
from tests.support.quotas import GPU, PLENTY, apply_tree, gpus, leaf
from tests.support.world import POLICY as POLICY_OF_PYTORCH
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
POLICY = (EXAMPLES / "policy.yaml").read_text()
SAVES = "trap 'sleep 1; echo saved step 7 >> $0; exit 0' TERM; touch $0; echo started from $(cat $0); sleep 1000 & wait"
"""A training that saves when it is told to end, and says what it starts from."""


def elastic_job(*, saves: bool = False, grace: str = "20s", **spec: object) -> str:
    manifest = yaml.safe_load((EXAMPLES / "elasticjob.yaml").read_text())
    manifest["metadata"]["annotations"] = {"convoy.dev/checkpoint-grace": grace}
    template = manifest["spec"]["replicaSpecs"]["worker"]["template"]
    template["metadata"]["annotations"] = {"convoy.dev/duration": "10h"}
    if saves:
        template["metadata"]["annotations"] = {"convoy.dev/run": "process"}
        template["spec"]["volumes"] = [{"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}]
        command = ["/bin/bash", "-c", SAVES, "/disk/checkpoint"]
        mounts = [{"name": "disk", "mountPath": "/disk"}]
        template["spec"]["containers"][0] |= {"command": command, "volumeMounts": mounts}
    manifest["spec"] |= spec
    return yaml.safe_dump(manifest)


def logs(world) -> list[str]:
    return [file.read_text() for file in (world.home / "north/logs").glob("*/*.log")]


def train(world) -> None:
    """Both workers listen for their notice."""
    world.expect("llama", "Running")
    world.until(lambda: sum("started from" in text for text in logs(world)) == 2, "both workers have started")


def saved(world) -> int:
    """How many workers have saved their work."""
    return (world.home / "north/volumes/default/disk/checkpoint").read_text().count("saved step 7")


def live(world, member: str = "north") -> list[str]:
    pods = world.pods(member)
    return [pod["metadata"]["name"] for pod in pods if pod["status"].get("phase") in ("Pending", "Running")]


@needs_isolation
def test_suspending_a_running_job_lets_its_workers_save_and_gives_back_all_it_held(world):
    world.member("north", 8, time_scale=1.0)
    world.apply(POLICY, elastic_job(saves=True))
    train(world)
    world.suspend("llama")
    world.until(lambda: not live(world), "no pod is left, the master's neither")
    assert saved(world) == 2
    job = world.job("llama")
    assert job.state == "Suspended"
    world.until(lambda: not Work.objects.exclude(state="Gone").exists(), "the copy is removed")
    assert world.copies("elasticjobs", "elastic.iml.github.io/v1alpha1") == {"north": []}
    world.until(lambda: world.job("llama").charge is None, "its quota is free")
    assert ("StoppingPods", "Stopping 2 pods of attempt 1: they have 20 s to save their work") in world.events("llama")


@needs_isolation
def test_a_resumed_job_runs_as_a_new_attempt_from_where_it_saved(world):
    world.member("north", 8, time_scale=1.0)
    world.apply(POLICY, elastic_job(saves=True))
    train(world)
    world.suspend("llama")
    world.until(lambda: not live(world), "no pod is left")
    world.resume("llama")
    assert world.expect("llama", "Running").attempt == 2
    world.until(lambda: any("started from saved step 7" in text for text in logs(world)), "it began from step 7")


@needs_isolation
def test_resuming_while_the_workers_still_save_starts_nothing_beside_them(world):
    world.member("north", 8, time_scale=1.0)
    world.apply(POLICY, elastic_job(saves=True))
    train(world)
    world.suspend("llama")
    world.until(lambda: Work.objects.get().state == "Suspending", "it is being suspended")
    world.resume("llama")
    assert world.expect("llama", "Running").attempt == 2
    assert set(Pod.objects.filter(phase="Running").values_list("attempt", flat=True)) == {2}
    assert saved(world) == 2


@needs_isolation
def test_a_worker_that_never_ends_is_killed_when_its_grace_is_over(world):
    world.member("north", 8, time_scale=1.0)
    text = elastic_job(saves=True, grace="2s").replace("sleep 1; echo", "sleep 900; echo")
    world.apply(POLICY, text)
    train(world)
    world.suspend("llama")
    world.until(lambda: not [name for name in live(world) if "worker" in name], "killed")
    world.until(lambda: not live(world), "and the master too")


def test_a_node_that_is_off_does_not_keep_a_suspended_job_waiting_for_its_pods(world):
    member = world.member("north", 8, time_scale=1.0)
    world.apply(POLICY, elastic_job(grace="1s"))
    world.expect("llama", "Running")
    member.disturb(Fault("node-down", 0.0, "north-pool0-0"))
    world.suspend("llama")
    world.until(lambda: Work.objects.get().state in ("Withdrawing", "Gone"), "it goes on to remove the copy")


@needs_isolation
def test_deleting_a_job_that_is_being_suspended_removes_it(world):
    world.member("north", 8, time_scale=1.0)
    world.apply(POLICY, elastic_job(saves=True))
    world.expect("llama", "Running")
    world.suspend("llama")
    actions.delete(world.job("llama"), by="test", now=timezone.now())
    world.until(lambda: world.pods("north") == [] and not Work.objects.exists(), "nothing is left")


def test_a_job_whose_script_always_fails_ends_after_three_pods_and_says_that_its_master_did(world):
    world.member("north", 8)
    manifest = yaml.safe_load(elastic_job())
    worker = manifest["spec"]["replicaSpecs"]["worker"]
    worker["replicas"] = 1
    worker["template"]["metadata"]["annotations"] = {"convoy.dev/duration": "20s", "convoy.dev/exit-code": "7"}
    world.apply(POLICY, yaml.safe_dump(manifest))
    job = world.expect("llama", "Failed")
    assert "beyond the restart count" in job.reason["message"] or "exitcode=1" in job.reason["message"]
    names = [pod["metadata"]["name"] for pod in world.pods("north") if "worker" in pod["metadata"]["name"]]
    assert names == [f"llama-edljob-worker-{number}" for number in range(3)]


def test_a_member_that_denies_the_masters_account_its_rights_is_not_sent_the_job_which_runs_elsewhere(world):
    north = world.member("north", 8)
    north.disturb(Fault("deny", target="default/default"))
    world.apply(POLICY, elastic_job())
    world.until(lambda: any(reason == "SyncWorkFailed" for reason, _ in world.events("llama")), "it is refused")
    [told] = {words for reason, words in world.events("llama") if reason == "SyncWorkFailed"}
    assert "ServiceAccount default in namespace default may not get elasticjobs.elastic.iml.github.io" in told
    assert "create pods" in told and "the DLRover master" in told
    assert world.copies("elasticjobs", "elastic.iml.github.io/v1alpha1") == {"north": []}
    world.member("south", 8)
    world.expect("llama", "Running", on="south")


def test_a_joining_cluster_is_warned_of_the_rights_that_masters_lack_there(world, tmp_path):
    made = SimulatedMember("east", tmp_path / "east", Shape((), {}))
    made.start()
    made.disturb(Fault("deny", target="dlrover/default"))
    try:
        cluster = clusters.join("east", yaml.safe_dump(made.kubeconfig()), by="test", now=timezone.now())
    finally:
        made.stop()
    lacks = {(p["verb"], p["resource"]) for p in cluster.permissions if not p["allowed"]}
    assert ("create", "pods") in lacks and ("watch", "elasticjobs.elastic.iml.github.io") in lacks
    [words] = Event.objects.filter(reason="RightsMissing").values_list("message", flat=True)
    assert "create pods (the DLRover master as ServiceAccount default in namespace dlrover)" in words


@needs_isolation
def test_a_preempted_job_saves_leaves_before_its_deadline_and_waits_where_it_stood(unswept):
    """An ElasticJob has borrowed what another queue was promised."""
    unswept.member("north", 2, time_scale=1.0)
    apply_tree(leaf("a", **gpus(2, 2)), leaf("b", **gpus(0, 2)), total={**PLENTY, GPU: 2})
    manifest = yaml.safe_load(elastic_job(saves=True, grace="300s"))
    manifest["metadata"]["labels"] = {"quota.scheduling.alibabacloud.com/name": "b"}
    unswept.apply(POLICY, yaml.safe_dump(manifest))
    train(unswept)
    mine = yaml.safe_load(pytorch_job("mine", workers=1, duration="10h"))
    mine["metadata"]["labels"] = {"quota.scheduling.alibabacloud.com/name": "a"}
    unswept.apply(POLICY_OF_PYTORCH, yaml.safe_dump(mine))
    unswept.expect("mine", "Running")
    assert saved(unswept) == 2
    unswept.expect("llama", "Queued")
