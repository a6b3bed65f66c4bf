"""Pods and nodes of all members through a stock kubectl at the fleet, out of the rows their watchers write."""

import json
from datetime import timedelta
from itertools import islice

import pytest
from django.utils import timezone

from fleet.changes import journal
from fleet.core.node_exclusions import ExclusionReason
from fleet.kube.resources import PODS
from fleet.models import Cluster, Grant
from fleet.services.clusters import clusters, node_exclusions
from fleet.services.clusters.node_exclusions import Fault
from tests.fleet.kubeapi.builders import Member, a_pod
from tests.support.kubectl import client_of, served
from tests.support.people import person

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def kubectl(transactional_db, admin, tmp_path):
    with served(tmp_path) as made:
        yield made


@pytest.fixture
def ada(kubectl):
    return kubectl.as_user("ada")


@pytest.fixture
def north(transactional_db):
    member = Member("north")
    member.node("n1")
    return member


@pytest.fixture
def south(transactional_db):
    return Member("south")


def table(text):
    header, *rows = text.splitlines()
    return [dict(zip(header.split(), row.split(), strict=False)) for row in rows]


def as_json(ada, *args):
    return json.loads(ada.says("get", *args, "-ojson"))


def test_it_lists_the_pods_of_all_members(ada, north, south):
    north.pods(a_pod("llama-master-0"), a_pod("llama-worker-0", node="", phase="Pending"))
    south.pods(a_pod("bert-master-0", namespace="vision"))
    first, second = table(ada.says("get", "pods"))
    expected = {
        "NAME": "llama-master-0.north",
        "READY": "1/1",
        "STATUS": "Running",
        "RESTARTS": "2",
        "CLUSTER": "north",
    }
    assert expected.items() <= first.items() and first["AGE"].endswith("d")
    assert (second["NAME"], second["READY"], second["STATUS"]) == ("llama-worker-0.north", "0/1", "Pending")
    assert [row["NAMESPACE"] for row in table(ada.says("get", "po", "-A"))] == ["default", "default", "vision"]
    assert "n1.north" in ada.says("get", "pods", "-owide")


def test_pods_of_one_name_stay_apart_and_are_named_by_their_cluster(ada, north, south):
    north.pods(a_pod("llama-master-0"))
    south.pods(a_pod("llama-master-0"))
    names = ada.says("get", "pods", "-oname").split()
    assert names == ["pod/llama-master-0.north", "pod/llama-master-0.south"]
    [shown] = [as_json(ada, name) for name in names[1:]]
    assert shown["metadata"]["labels"]["convoy.dev/cluster"] == "south"
    assert shown["metadata"]["annotations"]["convoy.dev/name"] == "llama-master-0"
    refusal = ada.refused("get", "pod", "llama-master-0")
    assert "in several clusters: name one of llama-master-0.north, llama-master-0.south" in refusal


def test_a_name_that_only_one_cluster_has_is_enough(ada, north, south):
    north.pods(a_pod("llama-master-0"))
    assert ada.says("get", "pod", "llama-master-0", "-oname").strip() == "pod/llama-master-0.north"
    assert "not found" in ada.refused("get", "pod", "llama-master-1")
    assert "not found" in ada.refused("get", "pod", "llama-master-0.south")


def test_the_longest_names_are_cut_and_found_again(ada, kubectl, north):
    far = Member("f" * 63)
    one, other = "a" * 252 + "b", "a" * 252 + "c"
    far.pods(a_pod(one), a_pod(other))
    names = ada.says("get", "pods", "-oname").split()
    assert len(set(names)) == 2 and all(len(name) == len("pod/") + 253 for name in names)
    assert [as_json(ada, name)["metadata"]["annotations"]["convoy.dev/name"] for name in names] == [one, other]
    assert ada.says("get", "pods", "-oname", "--chunk-size=1").split() == names
    assert ada.says("get", "pods", "-oname", "--field-selector", f"metadata.name={names[0][4:]}").split() == names[:1]


def test_it_selects_by_labels_and_fields(ada, north, south):
    north.node("n1")
    north.pods(a_pod("a", team="x"), a_pod("b", node="n2", phase="Succeeded", team="y"))
    south.pods(a_pod("c", team="x"))

    def names(*selectors):
        return ada.says("get", "pods", "-A", "-oname", *selectors).split()

    assert names("-l", "team=x") == ["pod/a.north", "pod/c.south"]
    assert names("-l", "team=x,convoy.dev/cluster=south") == ["pod/c.south"]
    assert names("-l", "team in (x,y),team!=y") == ["pod/a.north", "pod/c.south"]
    assert names("-l", "restartPolicy=Never") == names("-l", "name=main") == names("-l", "team=X") == []
    assert names("--field-selector", "spec.nodeName=n1.north") == ["pod/a.north"]
    assert names("--field-selector", "status.phase=Succeeded") == ["pod/b.north"]
    assert names("--field-selector", "status.phase!=Succeeded,spec.nodeName=n2.north") == []
    assert names("--field-selector", "metadata.name=c.south") == ["pod/c.south"]
    assert names("--field-selector", "metadata.name=c") == ["pod/c.south"]
    assert names("--field-selector", "metadata.name=c.north") == []


def test_it_lists_in_pages_across_namespaces_and_clusters(ada, north, south):
    expected = set()
    for member in (north, south):
        for namespace in ("default", "vision"):
            member.pods(*(a_pod(f"pod-{n}", namespace=namespace) for n in range(7)))
            expected |= {f"{namespace}/pod-{n}.{member.row.name}" for n in range(7)}
    names = ada.says("get", "pods", "-A", "--chunk-size=3", "--no-headers").splitlines()
    assert {"/".join(line.split()[:2]) for line in names} == expected and len(names) == len(expected)


def test_it_watches_pods_come_change_and_go(ada, north, south):
    with ada.running("get", "pods", "-w", "-l", "team=x", "--output-watch-events", "--no-headers") as watching:
        pod = a_pod("a", phase="Pending", team="x")
        north.pods(pod)
        south.pods(a_pod("b", team="y"))
        assert watching.stdout.readline().split()[:2] == ["ADDED", "a.north"]
        north.pods({**a_pod("a", team="x"), "metadata": pod["metadata"]})
        assert watching.stdout.readline().split()[:4] == ["MODIFIED", "a.north", "1/1", "Running"]
        north.lose_pod("a")
        assert watching.stdout.readline().split()[:2] == ["DELETED", "a.north"]


def test_one_pod_is_watched_by_its_name_in_the_cluster_and_waited_for_by_its_whole_name(ada, north, south):
    north.pods(a_pod("a"), a_pod("b"))
    assert ada.says("wait", "--for=condition=Ready", "pod/a.north", "--timeout=5s").startswith(
        "pod/a.north condition met"
    )
    # Not `get pod a -w`, as which kubectl asks for this: it misses what happens before its watch is open.
    selected = ("--field-selector", "metadata.name=a")
    with ada.running("get", "pods", *selected, "-w", "--output-watch-events", "--no-headers") as watching:
        assert watching.stdout.readline().split()[:2] == ["ADDED", "a.north"]
        north.lose_pod("b")
        north.lose_pod("a")
        assert watching.stdout.readline().split()[:2] == ["DELETED", "a.north"]


def test_a_cluster_that_leaves_takes_its_pods_and_nodes_along(ada, admin, north):
    north.pods(a_pod("a"))
    with (
        ada.running("get", "pods", "-w", "--output-watch-events", "--no-headers") as pods,
        ada.running("get", "nodes", "-w", "--output-watch-events", "--no-headers") as nodes,
    ):
        assert pods.stdout.readline().split()[:2] == ["ADDED", "a.north"]
        assert nodes.stdout.readline().split()[:2] == ["ADDED", "n1.north"]
        clusters.detach(Cluster.objects.get(), by="ada", now=timezone.now(), force=True)
        assert pods.stdout.readline().split()[:2] == ["DELETED", "a.north"]
        assert nodes.stdout.readline().split()[:2] == ["DELETED", "n1.north"]


def test_a_silent_cluster_is_said_to_be_silent(ada, north):
    north.pods(a_pod("a"))
    since = timezone.now() - timedelta(minutes=5)
    with ada.running("get", "pods", "-w", "--no-headers") as watching:
        assert "stale" not in watching.stdout.readline()
        row = Cluster.objects.get()
        row.stale_since = since
        clusters.announce(row, ["stale_since"], timezone.now())
        assert "Running (stale)" in watching.stdout.readline()
    shown = as_json(ada, "pod", "a")
    assert shown["metadata"]["annotations"]["convoy.dev/shown-as-of"] == f"{since:%Y-%m-%dT%H:%M:%SZ}"
    ready = next(each for each in shown["status"]["conditions"] if each["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("Unknown", "ClusterSilent") and "north" in ready["message"]
    assert shown["status"]["phase"] == "Running"
    assert "Ready (stale)" not in ada.says("get", "nodes") and "Unknown (stale)" in ada.says("get", "nodes")


def test_what_one_member_answers_costs_nobody_the_list_of_all(ada, north, south):
    hostile = a_pod("a")
    ended = {"exitCode": 2**40, "startedAt": "yesterday", "message": "\x00\ud800"}
    hostile["status"]["containerStatuses"] = [
        {"name": "main", "restartCount": -(2**40), "state": {"terminated": ended}}
    ]
    hostile["status"] |= {"reason": ["x"], "podIP": {"a": 1}, "startTime": "soon"}
    hostile["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "a lot"}}
    hostile["metadata"]["labels"] |= {"number": 1}
    north.pods(hostile)
    south.pods(a_pod("b"))
    assert "a.north" in ada.says("describe", "pods") and "b.south" in ada.says("describe", "pods")


def test_it_describes_pods_and_nodes(ada, north):
    pod = a_pod("a", team="x")
    pod["spec"]["initContainers"] = [{"name": "before", "image": "setup:1"}]
    north.pods(pod)
    text = ada.says("describe", "pod", "a")
    assert "setup:1" in text and "Waiting" not in text
    assert "a.north" in text and "train:1" in text and "n1.north" in text and "Started:" in text
    text = ada.says("describe", "node", "n1.north")
    assert "a.north" in text and "nvidia.com/gpu" in text
    assert table(ada.says("get", "nodes"))[0] == {"NAME": "n1.north", "STATUS": "Ready", "CLUSTER": "north"}


def test_it_watches_nodes(ada, north):
    with ada.running("get", "nodes", "-w", "--output-watch-events", "--no-headers") as watching:
        assert watching.stdout.readline().split()[:3] == ["ADDED", "n1.north", "Ready"]
        north.node("n1", ready=False)
        assert watching.stdout.readline().split()[:3] == ["MODIFIED", "n1.north", "NotReady"]
        north.node("n2")
        assert watching.stdout.readline().split()[:3] == ["ADDED", "n2.north", "Ready"]
        fault = Fault("k", timezone.now(), ExclusionReason.INFRASTRUCTURE, "failed 3 times")
        node_exclusions.report(north.row, "n2", fault, timezone.now())
        assert watching.stdout.readline().split()[:3] == ["MODIFIED", "n2.north", "Ready,Excluded"]
        assert "failed 3 times" in ada.says("describe", "node", "n2.north")
        assert "UTC: failed 3 times" in ada.says("get", "node", "n2.north", "-owide")
        north.lose_node("n1")
        assert watching.stdout.readline().split()[:2] == ["DELETED", "n1.north"]


def test_it_reads_only_and_names_the_remedy(ada, north):
    north.pods(a_pod("a"))
    assert "delete or suspend the job" in ada.refused("delete", "pod", "a.north", "--wait=false")
    assert "submit a job" in ada.refused("run", "x", "--image=y")
    assert "change the job" in ada.refused("label", "pod", "a.north", "b=c")
    assert "debug container is added by the kubectl of its cluster" in ada.refused(
        "debug", "a.north", "--image=busybox"
    )
    assert "suspend the job" in ada.refused(
        "create", "--raw", "/api/v1/namespaces/default/pods/a.north/eviction", "-f", "-", given="{}"
    )
    assert "read only at the fleet" in ada.refused("label", "node", "n1.north", "b=c")
    assert "`convoy cluster cordon CLUSTER NODE`" in ada.tries("cordon", "n1.north").stderr


def test_it_shows_each_the_pods_of_the_namespaces_they_read(kubectl, ada, north):
    north.pods(a_pod("a", namespace="vision"), a_pod("b", namespace="speech"))
    person("tina", (Grant.Role.VIEWER, "vision"))
    tina = kubectl.as_user("tina")
    assert tina.says("get", "pods", "-A", "-oname").split() == ["pod/a.north"]
    assert "Forbidden" in tina.refused("get", "pods", "-n", "speech")
    assert "Forbidden" in tina.refused("get", "pod", "b", "-n", "speech")
    assert "Forbidden" in tina.refused("logs", "b.north", "-n", "speech")
    assert tina.says("get", "nodes", "-oname").split() == ["node/n1.north"]
    assert tina.says("auth", "can-i", "list", "pods", "-n", "vision").startswith("yes")
    assert tina.says("auth", "can-i", "get", "pods", "--subresource=log", "-n", "vision").startswith("yes")
    for question in (["list", "pods", "-n", "speech"], ["delete", "pods", "-n", "vision"], ["create", "pods/exec"]):
        assert tina.tries("auth", "can-i", *question).stdout.startswith("no")


def test_it_is_found_by_discovery_and_explained(ada):
    resources = {each["name"]: each for each in json.loads(ada.says("get", "--raw", "/api/v1"))["resources"]}
    assert resources["pods"]["verbs"] == ["get", "list", "watch"] and resources["pods/log"]["verbs"] == ["get"]
    assert "containers" in ada.says("explain", "pod.spec") and "allocatable" in ada.says("explain", "node.status")


def test_a_pod_newer_than_the_watch_is_told_first_as_added_however_far_its_cluster_changed_before(
    kubectl, north, monkeypatch
):
    """The change of its cluster, which has all pods of it sent, was read with other changes than the pod's own."""
    monkeypatch.setattr("fleet.kubeapi.watching._PIECE", 1)
    client = client_of(kubectl.as_user("ada").file)
    north.pods(a_pod("old"))
    since = str(journal.head())
    Cluster.objects.filter(name="north").update(state="Unknown")
    cluster = Cluster.objects.get(name="north")
    change = journal.Change("Cluster", "", "north", str(cluster.uid), journal.Action.MODIFIED)
    journal.append([change], timezone.now())
    north.pods(a_pod("new"))
    told = client.watch(PODS.path(), resource_version=since, timeout_s=60)
    seen = [(each.type, each.object["metadata"]["name"]) for each in islice(told, 2)]
    assert seen == [("MODIFIED", "old.north"), ("ADDED", "new.north")]
