"""1.2: TFJobs, and the way of Volcano with their gangs."""

import json
from pathlib import Path

import pytest
import yaml

from fleet.kube.resources import PODS, TF_JOBS, VOLCANO_POD_GROUPS, VOLCANO_QUEUES
from tests.acceptance.builders import POLICY
from tests.support.quotas import apply_tree, leaf

pytestmark = pytest.mark.django_db(transaction=True)

MNIST = (Path(__file__).parent / "manifests" / "mnist.yaml").read_text()
QUEUED = "NoClusterFits"


def mnist(name: str = "mnist-train", *, duration: str = "1h", notes: dict | None = None, **replicas: int) -> dict:
    """The manifest as people write it, with another name, run time or number of pods."""
    made = yaml.safe_load(MNIST)
    made["metadata"] |= {"name": name, "annotations": notes or {}}
    specs = made["spec"]["tfReplicaSpecs"]
    made["spec"]["tfReplicaSpecs"] = {
        role: {"replicas": count, "template": json.loads(json.dumps(specs[role]["template"]))}
        for role, count in (replicas or {"Ps": 1, "Chief": 1, "Worker": 2}).items()
    }
    for spec in made["spec"]["tfReplicaSpecs"].values():
        spec["template"]["metadata"]["annotations"]["convoy.dev/duration"] = duration
    return made


def asking_volcano(manifest: dict, level: str) -> dict:
    """As the seed has it, beside the roles; or in the template of one role alone."""
    if level == "role":
        del manifest["spec"]["schedulerName"]
        manifest["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["schedulerName"] = "volcano"
    return manifest


def applied(world, *manifests: dict) -> None:
    world.apply(POLICY, *(yaml.safe_dump(manifest) for manifest in manifests))


def by_kubectl(ada, *manifests: dict) -> str:
    return ada.says("apply", "-f", "-", given="\n---\n".join((POLICY, *map(yaml.safe_dump, manifests))))


def shown(ada, name: str) -> dict:
    """What kubectl shows of a job."""
    return json.loads(ada.says("get", "tfjob", name, "-o", "json"))


def test_1_2_1_a_tfjob_with_ps_chief_and_worker_is_read_as_three_roles_with_their_totals(convoy):
    applied = convoy("apply", "-f", "-", stdin=MNIST)
    assert applied.code == 0, applied.err
    job = json.loads(convoy("get", "tfjob", "mnist-train", "-o", "json").out)
    assert {role["name"]: role["replicas"] for role in job["roles"]} == {"chief": 1, "ps": 1, "worker": 2}
    assert job["total"] == {"nvidia.com/gpu": 4, "pods": 4}


def test_1_2_2_of_two_tfjobs_of_4_gpus_on_4_gpus_one_runs_whole_and_the_other_holds_none(world, ada):
    world.member("north", 2, 2)
    by_kubectl(ada, mnist("one", Worker=4), mnist("two", Worker=4))
    world.until(lambda: sorted(world.job(n).state for n in ("one", "two")) == ["Queued", "Running"], "one of them runs")
    jobs = json.loads(ada.says("get", "tfjobs", "-o", "json"))["items"]
    [waits] = [each for each in jobs if each["status"]["convoy"]["state"] == "Queued"]
    assert waits["status"]["convoy"]["reason"]["code"] == QUEUED
    world.until(lambda: len(ada.says("get", "pods", "-o", "name").split()) == 4, "its pods are shown")
    assert waits["metadata"]["name"] not in world.copies("tfjobs")["north"]


def test_1_2_2_with_gang_off_for_some_of_its_pods_the_command_line_warns(ada):
    manifest = mnist()
    manifest["spec"]["runPolicy"] = {"schedulingPolicy": {"minAvailable": 1}}
    said = ada.says("apply", "-f", "-", given=yaml.safe_dump(manifest))
    assert "Warning: spec.runPolicy.schedulingPolicy.minAvailable: 1 of 4 pods may start and hold their GPUs" in said


@pytest.mark.parametrize("level", ["job", "role"])
def test_1_2_3_scheduler_name_volcano_at_any_level_makes_pods_and_pod_group_of_volcano(world, level):
    world.member("north", 8)
    applied(world, asking_volcano(mnist(), level))
    world.expect("mnist-train", "Running")
    pods = world.pods("north")
    assert {pod["spec"]["schedulerName"] for pod in pods} == {"volcano"}
    notes = [pod["metadata"]["annotations"] for pod in pods]
    assert {note["scheduling.k8s.io/group-name"] for note in notes} == {"mnist-train"}
    assert sorted(note["volcano.sh/task-spec"] for note in notes) == ["chief", "ps", "worker", "worker"]
    group = world.clients["north"].get(VOLCANO_POD_GROUPS.path("default", "mnist-train"))
    assert group["spec"]["minMember"] == 4 and group["spec"]["minResources"] == {"nvidia.com/gpu": "4"}


@pytest.mark.parametrize("level", ["job", "role"])
def test_1_2_3_scheduler_name_volcano_passes_over_a_member_without_volcano_and_says_why(world, level):
    world.member("north", 8, serves={"podgroups.scheduling.volcano.sh": ""})
    applied(world, asking_volcano(mnist(), level))
    world.until(lambda: (world.job("mnist-train").reason or {}).get("code") == QUEUED, "it is told")
    [north] = world.job("mnist-train").reason["clusters"]
    assert (north["cluster"], north["code"]) == ("north", "SchedulerNotServed")
    assert "does not serve scheduling.volcano.sh/v1beta1 PodGroup" in north["message"]
    world.member("south", 4)
    world.expect("mnist-train", "Running", on="south")
    assert not world.pods("north")


def test_1_2_3_min_available_of_the_scheduling_policy_is_what_the_pod_group_needs(world):
    world.member("north", 8)
    manifest = mnist()
    manifest["spec"]["runPolicy"] = {"schedulingPolicy": {"minAvailable": 3}}
    applied(world, manifest)
    world.expect("mnist-train", "Running")
    group = world.clients["north"].get(VOLCANO_POD_GROUPS.path("default", "mnist-train"))
    assert group["spec"]["minMember"] == 3 and group["spec"]["minResources"] == {"nvidia.com/gpu": "3"}


def test_1_2_4_pods_are_not_created_until_the_pod_group_leaves_pending(world):
    world.member("north", 2)
    client = world.clients["north"]
    manifest = mnist("late", Worker=2)
    manifest["spec"] |= {"runPolicy": {"schedulingPolicy": {"minResources": {"nvidia.com/gpu": "3"}}}}
    manifest["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["schedulerName"] = "volcano"
    del manifest["spec"]["schedulerName"]
    manifest["metadata"]["namespace"] = "default"
    client.create(TF_JOBS.path("default"), manifest)
    group = VOLCANO_POD_GROUPS.path("default", "late")
    listed = VOLCANO_POD_GROUPS.path("default")
    world.until(lambda: client.list(listed)["items"], "the operator makes the pod group")
    world.until(lambda: client.get(TF_JOBS.path("default", "late")).get("status"), "the operator has seen the job")
    assert not client.list(PODS.path("default"))["items"] and not client.get(group).get("status")
    client.merge_patch(group, {"spec": {"minResources": {"nvidia.com/gpu": "2"}}})
    world.until(lambda: len(client.list(PODS.path("default"))["items"]) == 2, "the pods are made")
    assert client.get(group)["status"]["phase"] == "Inqueue"


@pytest.mark.parametrize("near", [True, False], ids=["wanting to be near", "without a wish"])
def test_1_2_5_one_ps_and_two_workers_that_want_to_be_near_land_on_the_node_that_fits_three(world, near):
    world.member("north", 0, 2)
    manifest = mnist("near", notes={"volcano.sh/task-topology-affinity": "ps,worker"} if near else {}, Ps=1, Worker=2)
    [server] = manifest["spec"]["tfReplicaSpecs"]["Ps"]["template"]["spec"]["containers"]
    server["resources"] = {"limits": {"cpu": "1"}}
    applied(world, manifest)
    world.expect("near", "Running")
    nodes = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in world.pods("north")}
    alone = "north-pool1-0" if near else "north-pool0-0"
    assert nodes == {"near-ps-0": alone, "near-worker-0": "north-pool1-0", "near-worker-1": "north-pool1-0"}


def test_1_2_6_a_leaf_of_the_fleet_is_the_queue_of_volcano_of_that_name_and_a_closed_one_refuses(world, ada):
    queues = {"queues.scheduling.volcano.sh": "v1beta1"}
    apply_tree(leaf("vision", "default"))
    world.member("north", 8, serves=queues)
    body = {"apiVersion": VOLCANO_QUEUES.api_version, "kind": "Queue", "metadata": {"name": "vision"}, "spec": {}}
    world.clients["north"].create(VOLCANO_QUEUES.path(), body)
    by_kubectl(ada, mnist("first"))
    world.expect("first", "Running")
    group = world.clients["north"].get(VOLCANO_POD_GROUPS.path("default", "first"))
    assert group["spec"]["queue"] == "vision"
    closed = VOLCANO_QUEUES.path(name="vision", subresource="status")
    world.clients["north"].merge_patch(closed, {"status": {"state": "Closed"}})
    by_kubectl(ada, mnist("second"))
    told = "not sent to north: its queue vision is closed"
    world.until(lambda: any(told in line for _, line in world.events("second")), "it is refused")
    assert told in ada.says("describe", "tfjob", "second")
    assert world.copies("tfjobs") == {"north": ["first"]}


def test_1_2_8_tf_config_names_hosts_of_one_cluster_for_roles_are_never_split(world, ada):
    world.member("north", 3)
    world.member("south", 4)
    by_kubectl(ada, mnist())
    world.expect("mnist-train", "Running", on="south")
    assert shown(ada, "mnist-train")["status"]["convoy"]["cluster"] == "south"
    pods = world.pods("south")
    told = [
        json.loads({e["name"]: e.get("value") for e in p["spec"]["containers"][0]["env"]}["TF_CONFIG"]) for p in pods
    ]
    hosts = {host for config in told for role in config["cluster"].values() for host in role}
    assert hosts == {f"{pod['metadata']['name']}.default.svc:2222" for pod in pods} and not world.pods("north")


def test_1_2_9_a_tfjob_has_succeeded_when_its_chief_has(world):
    world.member("north", 4)
    manifest = mnist()
    chief = manifest["spec"]["tfReplicaSpecs"]["Chief"]["template"]
    chief["metadata"]["annotations"]["convoy.dev/duration"] = "5s"
    applied(world, manifest)
    world.expect("mnist-train", "Succeeded")


def test_1_2_9_without_a_chief_it_has_succeeded_when_worker_0_has_or_all_workers(world):
    world.member("north", 4)
    manifest = mnist("all", duration="5s", Worker=2)
    manifest["spec"]["successPolicy"] = "AllWorkers"
    first = mnist("first", duration="5s", Ps=1, Worker=1)
    first["spec"]["tfReplicaSpecs"]["Ps"]["template"]["metadata"]["annotations"]["convoy.dev/duration"] = "10h"
    applied(world, manifest, first)
    world.expect("all", "Succeeded")
    world.expect("first", "Succeeded")


def test_1_2_9_a_failed_replica_that_is_never_restarted_fails_it(world):
    world.member("north", 4)
    manifest = mnist()
    worker = manifest["spec"]["tfReplicaSpecs"]["Worker"]
    worker["template"]["metadata"]["annotations"] |= {"convoy.dev/duration": "5s", "convoy.dev/exit-code": "1"}
    applied(world, manifest)
    job = world.expect("mnist-train", "Failed")
    assert (
        "2 Worker replica(s) failed" in job.reason["message"] or "1 Worker replica(s) failed" in job.reason["message"]
    )


def test_1_2_10_what_a_person_says_of_sidecars_and_storage_stays_on_the_pods(world, ada):
    world.member("north", 4)
    manifest = mnist("stored", Worker=1)
    template = manifest["spec"]["tfReplicaSpecs"]["Worker"]["template"]
    template["metadata"]["annotations"]["sidecar.istio.io/inject"] = "false"
    minio = [{"name": "S3_ENDPOINT", "value": "minio:9000"}, {"name": "AWS_REGION", "value": "us-west-1"}]
    template["spec"]["containers"][0]["env"] = minio
    by_kubectl(ada, manifest)
    world.expect("stored", "Running")
    [pod] = world.pods("north")
    assert pod["metadata"]["annotations"]["sidecar.istio.io/inject"] == "false"
    assert minio == pod["spec"]["containers"][0]["env"][:2]
