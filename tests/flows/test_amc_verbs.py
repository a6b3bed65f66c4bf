"""What ``kubectl amc`` does with objects of a cluster besides listing them: in full, logs, usage, deletion."""

import pytest

from fleet.kube.resources import PODS
from tests.support.amc import Amc, cells
from tests.support.kubectl import Person, served
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
MASTER = "pytorch-test-master-0"


@pytest.fixture
def ada(world, admin, tmp_path):
    for name in ("north", "south"):
        world.member(name, 8)
    world.apply(POLICY, pytorch_job("pytorch-test", duration="1h"))
    job = world.expect("pytorch-test", "Running")
    with served(tmp_path) as kubectl:
        made = Amc(kubectl.as_user("ada").file)
        made.cluster = str(job.cluster)
        yield made


def test_it_describes_an_object_with_its_events(ada):
    told = ada.says("describe", "pytorchjob", "pytorch-test")
    assert ["Name:", "pytorch-test"] in cells(told) and ["Cluster:", ada.cluster] in cells(told)
    assert "  Pytorch Replica Specs:" in told
    assert "Events:" in ada.says("describe", f"pod/{MASTER}", "-m", ada.cluster)


def test_it_prints_and_follows_logs_wherever_the_pod_is(ada):
    line = ada.says("logs", MASTER, "--tail", "1")
    assert line.count("\n") == 1
    with ada.running("logs", "-f", f"pod/{MASTER}") as following:
        assert following.stdout.readline()
    assert "not found" in ada.refused("logs", "nobody")


def test_it_warns_before_it_deletes_what_the_fleet_makes_again(world, ada):
    before = _uid(world, ada.cluster)
    done = ada.tries("delete", "pod", MASTER)
    assert (done.returncode, done.stdout) == (0, f'pod "{MASTER}" deleted from cluster {ada.cluster}\n')
    assert "will create it again" in done.stderr
    world.until(lambda: _uid(world, ada.cluster) not in ("", before), "the pod is another one")


def _uid(world, cluster):
    return next((pod["metadata"]["uid"] for pod in world.pods(cluster) if pod["metadata"]["name"] == MASTER), "")


def test_it_wants_to_know_which_of_two_objects(world, ada):
    for client in world.clients.values():
        client.create(PODS.path("default"), _pod("twin"))
    told = ada.refused("delete", "pod", "twin")
    assert "is in several clusters: north, south" in told and "-m CLUSTER" in told
    assert ada.says("delete", "pod", "twin", "-m", "south") == 'pod "twin" deleted from cluster south\n'
    assert [row[1] for row in cells(ada.says("get", "pod", "twin", "--no-headers"))] == ["north"]


def test_it_shows_what_is_used_where_that_is_measured(world, ada):
    world.member("bare", 8, serves={"metrics.k8s.io": ""})
    assert "Metrics API not available in cluster bare" in ada.refused("top", "node", "-m", "bare")
    done = ada.tries("top", "node")
    header, row, _ = cells(done.stdout)
    assert header == ["NAME", "CLUSTER", "CPU(cores)", "CPU%", "MEMORY(bytes)", "MEMORY%"]
    assert row[:2] == ["north-pool0-0", "north"] and row[3].endswith("%")
    assert "not available in cluster bare" in done.stderr and done.returncode == 0
    assert [MASTER, ada.cluster] in [line[:2] for line in cells(ada.says("top", "pod", "-n", "default"))]


def test_it_explains_wrong_words(ada):
    assert "unknown verb 'apply'" in ada.refused("apply")
    assert "give the name of the object" in ada.refused("delete", "pods")
    assert "-o toml is not known" in ada.refused("get", "pods", "-otoml")
    assert "exclude each other" in ada.refused("get", "pods", "-M", "-m", "north")


def _pod(name):
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "x"}]}}


def test_it_leaves_the_rest_to_kubectl_through_the_proxy(ada):
    door = Person(ada.kubeconfig, ada.kubeconfig.parent)
    [server] = [line.split()[1] for line in ada.kubeconfig.read_text().splitlines() if "server:" in line]
    through = ("--server", f"{server}/apis/cluster.karmada.io/v1alpha1/clusters/{ada.cluster}/proxy")
    assert door.says(*through, "get", "pod", MASTER, "-o", "jsonpath={.status.phase}") == "Running"
    assert "nodeSelector" in door.says(*through, "explain", "pytorchjob.spec.pytorchReplicaSpecs.template.spec")
    with door.running(*through, "get", "pods", "-w", "-o", "name") as watching:
        assert watching.stdout.readline().startswith("pod/")
    assert "--server" in ada.refused("get", "pods", "-o", "go-template={{.x}}")
