"""1.0: gangs on the fleet's clusters, statements 1, 9 and 11 to 19; where they say `fl`, it is kubectl or its plugin."""

import re
from datetime import datetime

import pytest
import yaml

from fleet.models import Event
from jobs.models import Attempt, Job
from tests.support.amc import Amc, cells
from tests.support.kubectl import served
from tests.support.quotas import apply_tree, leaf
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
TWIN = POLICY.replace("policy.one.alibabacloud.com", "policy.karmada.io")
FAILOVER = POLICY.replace(
    "  propagateDeps: true",
    """  propagateDeps: true
  failover: {application: {decisionConditions: {tolerationSeconds: 3}, purgeMode: Immediately}}""",
)
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}"
AGE = re.compile(r"\d+[smhd]\S*")


def breaks(name: str) -> str:
    """A job whose pods fail after a while, and whose job fails with them."""
    made = yaml.safe_load(pytorch_job(name, duration="20s"))
    for role in made["spec"]["pytorchReplicaSpecs"].values():
        role["template"]["metadata"]["annotations"]["convoy.dev/exit-code"] = "1"
        role["restartPolicy"] = "Never"
    return yaml.safe_dump(made)


@pytest.fixture
def ada(world, admin, tmp_path):
    with served(tmp_path) as door:
        yield door.as_user("ada")


@pytest.fixture
def amc(ada):
    return Amc(ada.file)


def test_1_0_1_get_clusters_lists_each_joined_member_with_its_version(world, ada):
    world.member("north", 8)
    world.member("south", 1)
    header, *rows = cells(ada.says("get", "clusters"))
    assert "VERSION" in header
    assert {row[0]: row[header.index("VERSION")][:1] for row in rows} == {"north": "v", "south": "v"}


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


def test_1_0_11_a_pod_of_8_gpus_is_not_sent_to_two_nodes_with_4_free_each_and_the_reason_says_so(world):
    world.member("north", 4, 4)
    world.apply(POLICY, pytorch_job("llama", workers=0, gpus=8))
    world.until(lambda: (world.job("llama").reason or {}).get("code") == "NoClusterFits", "it is told")
    [north] = world.job("llama").reason["clusters"]
    assert north["code"] == "NoNodeForPod" and "8 nvidia.com/gpu" in north["message"]
    assert world.pods("north") == []


@pytest.mark.parametrize("queued", [False, True], ids=["alone", "in a queue"])
def test_1_0_12_a_failed_job_leaves_after_its_toleration_not_before_and_goes_to_another_member(world, queued):
    for name in ("north", "south"):
        world.member(name, 4)
    if queued:
        apply_tree(leaf("team", "default"))
    world.apply(FAILOVER, breaks("llama"))
    world.until(lambda: Attempt.objects.filter(number=2).exists(), "it is placed again")
    first, second = Attempt.objects.order_by("number")[:2]
    assert first.cluster_name != second.cluster_name
    failed = Event.objects.filter(regarding_uid=str(world.job("llama").uid), reason="Moving").earliest("first_at")
    unwell = datetime.fromisoformat(str(failed.first_at)) - first.placed_at
    assert unwell.total_seconds() >= 3


def test_1_0_13_what_a_job_refers_to_is_there_before_its_pods_and_gone_with_the_last_who_refers_to_it(world):
    world.member("north", 8)
    jobs = (pytorch_job(name, duration="10h", config_map="settings") for name in ("one", "two"))
    world.apply(POLICY, CONFIG, *jobs)
    for name in ("one", "two"):
        world.expect(name, "Running")
    path = "/api/v1/namespaces/default/configmaps"

    def names() -> list[str]:
        return [each["metadata"]["name"] for each in world.clients["north"].list(path)["items"]]

    made = world.clients["north"].get(f"{path}/settings")["metadata"]["creationTimestamp"]
    assert all(made <= pod["metadata"]["creationTimestamp"] for pod in world.pods("north"))
    world.delete("one")
    world.until(lambda: world.copies() == {"north": ["two"]}, "one is gone")
    assert "settings" in names()
    world.delete("two")
    world.until(lambda: "settings" not in names(), "it is gone with the last")


def test_1_0_14_and_15_get_and_describe_show_created_before_release_and_the_binding_after(world, ada):
    world.apply(POLICY, pytorch_job("pytorch-test", duration="10h"))
    header, row = cells(ada.says("get", "pytorchjob"))
    assert (header, row[:2]) == (["NAME", "STATE", "AGE"], ["pytorch-test", "Created"]) and AGE.fullmatch(row[2])
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
    answer = as_admin.get(f"/api/v1/jobs/{job.uid}/logs/")
    assert answer.status_code == 200


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
