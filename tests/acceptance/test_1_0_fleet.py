"""1.0: gangs on the fleet's clusters, statements 1, 9 and 11 to 19; where they say `fl`, it is kubectl or its plugin."""

import json
import re
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
import yaml
from django.utils import timezone

from fleet.kube.resources import PYTORCH_JOBS
from fleet.models import Cluster
from fleet.services.clusters import clusters
from jobs.models import Attempt, Job
from jobs.services.follow.timeouts import health
from quotas.models import Queue
from quotas.services import queues
from tests.support import books
from tests.support.amc import Amc, cells
from tests.support.kubectl import served
from tests.support.quotas import GPU, apply_tree, gpus, leaf
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
TWIN = POLICY.replace("policy.one.alibabacloud.com", "policy.karmada.io")
FAILOVER = POLICY.replace(
    "  propagateDeps: true",
    """  propagateDeps: true
  failover: {application: {decisionConditions: {tolerationSeconds: 30}, purgeMode: Immediately}}""",
)
SUSPENDED = "  propagateDeps: true\n  suspension: {scheduling: true}"
HOLDING = {"reservations.scheduling.koordinator.sh": "v1alpha1"}
REFERRED = ("configmaps", "secrets", "serviceaccounts", "persistentvolumeclaims")
DEPENDENTS = """
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: b}}
---
{apiVersion: v1, kind: Secret, metadata: {name: settings}, stringData: {a: b}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: settings}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: settings, annotations: {convoy.dev/retention: Delete}}
spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}
"""
AGE = re.compile(r"\d+[smhd]\S*")


def breaks(name: str) -> str:
    """A job whose pods fail after a while, and whose job fails with them."""
    made = yaml.safe_load(pytorch_job(name, duration="20s"))
    for role in made["spec"]["pytorchReplicaSpecs"].values():
        role["template"]["metadata"]["annotations"]["convoy.dev/exit-code"] = "1"
        role["restartPolicy"] = "Never"
    return yaml.safe_dump(made)


def uneven(name: str) -> str:
    """Of 2, 3 and 3 GPUs: 8 in sum, and more than two nodes of 4 hold."""
    made = json.loads(json.dumps(yaml.safe_load(pytorch_job(name, duration="10h", gpus=3))))
    master = made["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0]
    master["resources"]["limits"] = {"nvidia.com/gpu": 2}
    return yaml.safe_dump(made)


def referring(name: str) -> str:
    """A job whose pods need a ConfigMap, a Secret, a ServiceAccount and a PersistentVolumeClaim, each called settings."""
    body = json.loads(json.dumps(yaml.safe_load(pytorch_job(name, duration="10h", config_map="settings"))))
    for role in body["spec"]["pytorchReplicaSpecs"].values():
        spec = role["template"]["spec"]
        spec["serviceAccountName"] = "settings"
        spec["volumes"].append({"name": "data", "persistentVolumeClaim": {"claimName": "settings"}})
        spec["containers"][0]["envFrom"] = [{"secretRef": {"name": "settings"}}]
    return yaml.safe_dump(body)


def fitted(cluster: str, fit: str) -> None:
    row = Cluster.objects.get(name=cluster)
    clusters.set_labels(row, {"convoy.dev/fit": fit}, by="test", now=timezone.now())


@pytest.fixture
def ada(world, admin, tmp_path):
    with served(tmp_path) as door:
        yield door.as_user("ada")


@pytest.fixture
def amc(ada):
    return Amc(ada.file)


def test_1_0_1_get_clusters_lists_versions_and_schedulers_and_where_reservation_is_enabled(world, ada, convoy):
    world.member("ack", 1, serves=HOLDING, scheduler="kube-scheduler:v1.31.0-aliyun.6.8.0.1")
    world.member("early", 1, serves=HOLDING, scheduler="kube-scheduler:v1.31.0-aliyun.6.7.9.1")
    world.member("koordinator", 1, serves=HOLDING)
    world.member("old", 1, serves=HOLDING, version="v1.27.4")
    world.member("plain", 1)
    expected = [
        ["ack", "v1.31.0", "kube-scheduler:v1.31.0-aliyun.6.8.0.1", "Enabled"],
        ["early", "v1.31.0", "kube-scheduler:v1.31.0-aliyun.6.7.9.1", "Disabled"],
        ["koordinator", "v1.31.0", "Unknown", "Enabled"],
        ["old", "v1.27.4", "Unknown", "Disabled"],
        ["plain", "v1.31.0", "Unknown", "Disabled"],
    ]
    header, *rows = cells(ada.says("get", "clusters"))
    assert header[:4] == ["NAME", "VERSION", "SCHEDULER", "RESERVATION"]
    assert [row[:4] for row in rows] == expected
    assert by_convoy(convoy) == expected


def by_convoy(convoy) -> list[list[str]]:
    """Name, version, scheduler and reservation, as `convoy get clusters` prints them."""
    header, *rows = cells(convoy("get", "clusters").out)
    assert header[-4:] == ["VERSION", "SCHEDULER", "RESERVATION", "HEARTBEAT"]
    return [[row[0], *row[-4:-1]] for row in rows]


def test_1_0_1_reservation_is_switched_on_and_off_and_only_on_where_the_cluster_can(world, ada, convoy):
    world.member("ack", 4, 4, serves=HOLDING, scheduler="kube-scheduler:v1.31.0-aliyun.6.8.0.1")
    world.member("plain", 1)
    assert convoy("cluster", "reservation", "ack", "--off").code == 0
    assert [row[-1] for row in by_convoy(convoy)] == ["Disabled", "Disabled"]
    assert [row[3] for row in cells(ada.says("get", "clusters"))[1:]] == ["Disabled", "Disabled"]
    ada.says("label", "cluster", "ack", "convoy.dev/fit=Reservation", "--overwrite")
    assert [row[-1] for row in by_convoy(convoy)] == ["Enabled", "Disabled"]
    refused = convoy("cluster", "reservation", "plain")
    assert refused.code == 1 and "does not serve scheduling.koordinator.sh/v1alpha1 Reservation" in refused.err


@pytest.mark.parametrize("policy", [POLICY, TWIN], ids=["one.alibabacloud.com", "karmada.io"])
def test_1_0_9_master_and_workers_land_in_one_member_or_none_and_no_member_holds_a_part(world, policy):
    world.member("north", 2)
    world.member("south", 2)
    world.apply(policy, pytorch_job("llama", workers=2))
    world.until(lambda: (world.job("llama").reason or {}).get("code") == "NoClusterFits", "no member holds it whole")
    assert world.pods("north") == world.pods("south") == []
    world.member("west", 3)
    world.expect("llama", "Running", on="west")
    assert len(world.pods("west")) == 3 and world.pods("north") == world.pods("south") == []


@pytest.mark.parametrize("fit", ["Aggregate", "Reservation"])
def test_1_0_11_a_pod_of_8_gpus_is_never_sent_to_two_nodes_with_4_free_each_and_the_reason_says_so(world, fit):
    world.member("north", 4, 4, serves=HOLDING)
    fitted("north", fit)
    world.apply(POLICY, pytorch_job("llama", workers=0, gpus=8))
    world.until(lambda: (world.job("llama").reason or {}).get("code") == "NoClusterFits", "it is told")
    [north] = world.job("llama").reason["clusters"]
    assert north["code"] == "NoNodeForPod" and "8 nvidia.com/gpu" in north["message"]
    assert world.pods("north") == []


def test_1_0_11_without_reservations_the_sum_is_enough_and_the_pods_are_stuck_and_with_them_it_is_rejected(world):
    world.member("north", 4, 4, serves=HOLDING)
    fitted("north", "Aggregate")
    world.apply(POLICY, uneven("llama"))
    world.expect("llama", "Dispatched", on="north")
    world.until(lambda: len(world.pods("north")) == 3, "its pods are made")
    assert not any(pod["spec"].get("nodeName") for pod in world.pods("north"))
    world.delete("llama")
    world.until(lambda: not world.pods("north"), "it is gone")
    fitted("north", "Reservation")
    world.apply(uneven("second"))

    def refusals() -> list[str]:
        return [each["code"] for each in (world.job("second").reason or {}).get("clusters", [])]

    # Before that it may be told that not enough is free: the fleet may not have heard yet that the pods are gone.
    world.until(lambda: refusals() == ["NoNodeForPod"], "it is told, once what the first had is free")
    assert world.job("second").reason["code"] == "NoClusterFits"


def test_1_0_12_a_failed_job_is_purged_after_its_30_s_not_before_and_goes_to_another_member(unswept):
    job = failed(unswept, FAILOVER)
    assert health.check(seen_failing_for(job, 29.9)) == 0
    assert unswept.copies()[job.cluster.name] == ["llama"]
    assert health.check(seen_failing_for(job, 30)) == 1
    unswept.until(lambda: Attempt.objects.filter(number=2).exists(), "it is placed again")
    first, second = Attempt.objects.order_by("number")[:2]
    assert first.cluster_name != second.cluster_name
    unswept.until(lambda: unswept.copies()[first.cluster_name] == [], "its first copy is purged")


def test_1_0_12_with_a_queue_it_is_unscheduled_and_queued_again_and_then_goes_to_another_member(unswept):
    apply_tree(leaf("team", "default"))
    job = failed(unswept, FAILOVER.replace("  propagateDeps: true", SUSPENDED))
    first, team = job.cluster.name, Queue.objects.get(path="root/team")
    queues.set_state(team, Queue.State.HELD, by="system", now=timezone.now())
    assert health.check(seen_failing_for(job, 30)) == 1
    assert (unswept.job("llama").state, unswept.job("llama").cluster) == ("Queued", None)
    unswept.until(lambda: unswept.copies()[first] == [], "its copy is purged")
    queues.set_state(team, Queue.State.OPEN, by="system", now=timezone.now())
    unswept.until(lambda: Attempt.objects.filter(number=2).exclude(cluster_name=first).exists(), "it is placed again")


def seen_failing_for(job: Job, seconds: float) -> datetime:
    """Now, with the failure and the watching of its cluster begun so many seconds ago: only time that was seen is judged."""
    now = timezone.now()
    began = now - timedelta(seconds=seconds)
    Job.objects.filter(pk=job.pk).update(unhealthy_since=began)
    Cluster.objects.filter(pk=job.cluster_id).update(watched_since=began)
    return now


def failed(world, policy: str) -> Job:
    """Its pods have failed, on one of two members."""
    for name in ("north", "south"):
        world.member(name, 4)
    world.apply(policy, breaks("llama"))
    world.until(lambda: world.job("llama").unhealthy_since is not None, "it has failed")
    return world.job("llama")


def test_1_0_13_what_a_job_refers_to_is_there_before_its_pods_and_gone_with_the_last_who_refers_to_it(world):
    world.member("north", 8)
    world.apply(POLICY, DEPENDENTS, *map(referring, ("one", "two")))
    for name in ("one", "two"):
        world.expect(name, "Running")

    def made() -> dict[str, str]:
        paths = (f"/api/v1/namespaces/default/{plural}" for plural in REFERRED)
        items = [item["metadata"] for path in paths for item in world.clients["north"].list(path)["items"]]
        return {item["uid"]: item["creationTimestamp"] for item in items if item["name"] == "settings"}

    assert len(made()) == len(REFERRED)
    began = min(pod["metadata"]["creationTimestamp"] for pod in world.pods("north"))
    assert all(at <= began for at in made().values())
    before = made()
    world.delete("one")
    world.until(lambda: world.copies() == {"north": ["two"]}, "one is gone")
    assert made() == before
    world.delete("two")
    world.until(lambda: not made(), "they are gone with the last")


def test_1_0_14_and_15_get_and_describe_show_created_before_release_and_the_binding_after(world, ada, convoy):
    world.apply(POLICY, pytorch_job("pytorch-test", duration="10h"))
    header, row = cells(ada.says("get", "pytorchjob"))
    assert (header, row[:2]) == (["NAME", "STATE", "AGE"], ["pytorch-test", "Created"]) and AGE.fullmatch(row[2])
    header, row = cells(convoy("get", "pytorchjob").out)
    assert header[:5] == ["NAME", "STATE", "AGE", "FLEET", "STATE"] and AGE.fullmatch(row[2])
    assert [*row[:2], row[3]] == ["pytorch-test", "Created", "Queued"]
    world.member("north", 8)
    world.expect("pytorch-test", "Running")
    told = ada.says("describe", "pytorchjob", "pytorch-test")
    line = next(line for line in told.splitlines() if "ScheduleBindingSucceed" in line)
    assert line.split()[:2] == ["Normal", "ScheduleBindingSucceed"]
    assert line.endswith("Result: {north:0,[{master 1} {worker 2}]}")


def test_1_0_16_get_m_shows_copies_by_cluster_with_adoption_and_the_live_object(world, amc):
    world.member("north", 8)
    world.member("south", 1)
    world.apply(POLICY, pytorch_job("pytorch-test", duration="10h"))
    world.expect("pytorch-test", "Running", on="north")
    header, row = cells(amc.says("get", "pytorchjob", "-M"))
    assert header == ["NAME", "CLUSTER", "STATE", "AGE", "ADOPTION"]
    assert [*row[:3], row[4]] == ["pytorch-test", "north", "Running", "Y"]
    assert "pytorch-test" not in "".join(amc.tries("get", "pytorchjob", "-m", "south").stdout)
    live = yaml.safe_load(amc.says("get", "pytorchjob", "pytorch-test", "-m", "north", "-oyaml"))
    assert live["status"]["replicaStatuses"]["Worker"]["active"] == 2


def test_1_0_17_get_pod_m_shows_pods_of_all_members_and_one_line_for_a_member_that_is_away(world, amc):
    world.member("north", 8)
    world.member("south", 1)
    world.apply(POLICY, pytorch_job("pytorch-test", duration="10h"))
    world.expect("pytorch-test", "Running", on="north")
    world.members["south"].faults.away = True
    said = amc.tries("get", "pod", "-M")
    header, *rows = cells(said.stdout)
    assert header == ["NAME", "CLUSTER", "READY", "STATUS", "RESTARTS", "AGE"] and len(rows) == 3
    assert len(said.stderr.strip().splitlines()) == 1 and "south" in said.stderr


def test_1_0_18_the_members_status_and_logs_show_on_the_fleets_object(world, as_admin):
    world.member("north", 8)
    world.apply(POLICY, pytorch_job("llama", duration="10h"))
    job = world.expect("llama", "Running")
    world.until(lambda: world.job("llama").status["replicaStatuses"]["Worker"].get("active") == 2, "counts arrive")
    assert {"Created", "Running"} <= {each["type"] for each in world.job("llama").status["conditions"]}
    world.finish("llama")
    world.expect("llama", "Succeeded")
    theirs = world.clients["north"].get(PYTORCH_JOBS.path("default", "llama"))["status"]
    world.until(lambda: world.job("llama").status == theirs, "it is the member's own")
    assert theirs["startTime"] <= theirs["completionTime"]
    said = as_admin.get(f"/api/v1/jobs/{job.uid}/logs/").getvalue()
    assert b"llama-master-0: joined the process group" in said


def test_1_0_19_a_member_that_refuses_the_gang_gives_it_back_and_the_next_one_is_tried(world):
    world.member("north", 8)
    world.member("south", 4)
    body = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "spec": {"pytorchReplicaSpecs": {}}}
    body["metadata"] = {"name": "llama", "namespace": "default"}
    first = "north"
    world.clients[first].create("/apis/kubeflow.org/v1/namespaces/default/pytorchjobs", body)
    world.apply(POLICY, pytorch_job("llama", duration="10h"))
    world.expect("llama", "Running", on="south")
    assert Job.objects.get().attempt == Attempt.objects.count()


def test_1_0_19_a_member_that_does_not_start_all_pods_in_time_gives_it_back_and_the_next_one_is_tried(world, settings):
    usual = settings.CONVOY_FAILOVER
    settings.CONVOY_FAILOVER = replace(usual, start_timeout_s=2.0)
    world.member("north", 4, 4)
    fitted("north", "Aggregate")
    apply_tree(leaf("team", "default", **gpus(0, 8)))
    world.apply(POLICY, uneven("llama"))
    world.expect("llama", "Dispatched", on="north")
    world.member("south", 8)
    world.until(lambda: Attempt.objects.get(number=1).outcome != "", "north gave it back")
    settings.CONVOY_FAILOVER = usual  # south has the time that it needs
    world.expect("llama", "Running", on="south")
    world.until(lambda: world.copies() == {"north": [], "south": ["llama"]}, "the first copy is withdrawn")
    assert books.used("root/team")[GPU] == 8
    assert "did not run all pods within 2 s" in Attempt.objects.get(number=1).message
