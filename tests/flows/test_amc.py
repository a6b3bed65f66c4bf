"""``kubectl amc`` as the seed uses it: a stock kubectl, the plugin beside it, the fleet's door, and clusters behind it."""

import pytest
import yaml

from fleet.models import Grant
from tests.support.amc import Amc, cells
from tests.support.kubectl import served
from tests.support.people import person
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def kubectl(transactional_db, tmp_path):
    with served(tmp_path) as made:
        yield made


@pytest.fixture
def ada(world, admin, kubectl):
    """North runs the seed's job; south has nothing."""
    world.member("north", 8)
    world.member("south", 1)
    world.apply(POLICY, pytorch_job("pytorch-test", workers=2, gpus=1, duration="1h"))
    world.expect("pytorch-test", "Running", on="north")
    return Amc(kubectl.as_user("ada").file)


def test_it_runs_the_seeds_session(world, ada):
    header, row = cells(ada.says("get", "pytorchjob", "-M"))
    assert header == ["NAME", "CLUSTER", "STATE", "AGE", "ADOPTION"]
    assert row[:3] == ["pytorch-test", "north", "Running"] and row[4:] == ["Y"]
    header, *rows = cells(ada.says("get", "pod", "-M"))
    assert header == ["NAME", "CLUSTER", "READY", "STATUS", "RESTARTS", "AGE"]
    assert [row[:5] for row in rows] == [
        [f"pytorch-test-{role}", "north", "1/1", "Running", "0"] for role in ("master-0", "worker-0", "worker-1")
    ]
    live = yaml.safe_load(ada.says("get", "pytorchjob", "pytorch-test", "-m", "north", "-oyaml"))
    assert live["metadata"]["uid"] != str(world.job("pytorch-test").uid)
    assert live["status"]["replicaStatuses"]["Worker"]["active"] == 2


def test_it_shows_any_kind_a_cluster_serves(ada):
    assert [row[:2] for row in cells(ada.says("get", "no", "--no-headers"))] == [
        ["north-pool0-0", "north"],
        ["south-pool0-0", "south"],
    ]
    assert ada.says("get", "pytorchjobs.v1.kubeflow.org", "-A", "-oname") == "pytorchjob.kubeflow.org/pytorch-test\n"
    assert cells(ada.says("get", "po", "-A", "-owide"))[0][:4] == ["NAMESPACE", "NAME", "CLUSTER", "READY"]
    assert (
        ada.says("get", "po", "-l", "training.kubeflow.org/replica-type=master", "-oname")
        == "pod/pytorch-test-master-0\n"
    )
    assert "doesn't have a resource type" in ada.refused("get", "unicorns")


def test_it_shows_several_kinds_at_once_each_in_a_table_of_its_own(world, ada):
    pods, jobs = ada.says("get", "pod,pytorchjob", "-M").split("\n\n")
    assert [row[0] for row in cells(pods)] == [
        "NAME",
        *(f"pod/pytorch-test-{role}" for role in ("master-0", "worker-0", "worker-1")),
    ]
    assert [row[:2] for row in cells(jobs)[1:]] == [["pytorchjob.kubeflow.org/pytorch-test", "north"]]
    whole = yaml.safe_load(ada.says("get", "pytorchjob,secret,node", "-oyaml"))
    assert [item["kind"] for item in whole["items"]] == ["PyTorchJob", "Node", "Node"]
    assert "only one kind can be watched" in ada.refused("get", "pod,pytorchjob", "-w")
    assert 'resource type "unicorns"' in ada.refused("get", "pod,unicorns")
    world.members["south"].faults.away = True
    said = ada.tries("get", "pod,pytorchjob", "-M")
    assert said.returncode == 0 and len(said.stderr.strip().splitlines()) == 1


def test_it_says_what_it_did_not_find(ada):
    assert 'pods "nobody" not found' in ada.refused("get", "pod", "nobody")
    assert 'clusters.cluster.karmada.io "west" not found' in ada.refused("get", "pod", "-m", "west")
    done = ada.tries("get", "pod", "-m", "south")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "No resources found in default namespace of south.\n")


def test_a_cluster_that_is_away_is_one_line_and_never_an_empty_list(world, ada):
    world.members["south"].stop()
    done = ada.tries("get", "pod", "-M")
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 4)
    assert done.stderr.startswith("warning: cluster south") and done.stderr.count("\n") == 1
    done = ada.tries("get", "pod", "-n", "kube-system")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)


def test_it_shows_no_more_than_the_fleet_allows(ada, kubectl):
    person("sam", (Grant.Role.VIEWER, "speech"))
    sam = Amc(kubectl.as_user("sam").file)
    assert "(Forbidden): sam may not read pods in namespace default" in sam.refused("get", "pod")
    assert "No resources found in speech" in sam.tries("get", "pod", "-n", "speech").stderr
