"""Events of pods at the fleet, through a stock kubectl: the members are asked, and only of pods that the fleet knows."""

import pytest
from django.utils import timezone

from fleet.kube.resources import EVENTS, PODS
from fleet.kubeapi import event_watches
from fleet.models import Grant
from fleet.services.members import member_events
from tests.fleet.kubeapi.builders import Member, a_pod
from tests.support.kubectl import served
from tests.support.members import api, join, members, requests_of
from tests.support.people import person

__all__ = ["members"]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def asked_each_time(monkeypatch):
    member_events._recent.clear()
    monkeypatch.setattr(member_events, "FRESH_S", 0.0)
    monkeypatch.setattr(event_watches, "POLL_S", 0.2)


def event(pod: dict, reason: str, *, namespace: str = "team", **more: object) -> dict:
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    about = {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": name, "uid": uid}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{pod['metadata']['name']}.{reason.lower()}", "namespace": namespace},
        "involvedObject": about,
        "type": "Warning",
        "reason": reason,
        "message": f"{reason} happened",
        "source": {"component": "kubelet"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:05Z",
        "count": 3,
        **more,
    }


def member(server, *names: str) -> tuple[Member, list[dict]]:
    """Whose pods are known to the fleet under their true uids."""
    made, client, pods = Member(server.name, join(server)), api(server), []
    for name in names:
        shown = a_pod(name, namespace="team", job="llama")
        created = client.create(PODS.path("team"), {key: shown[key] for key in ("metadata", "spec")})
        shown["metadata"]["uid"] = created["metadata"]["uid"]
        pods.append(shown)
    made.pods(*pods)
    made.server, made.client = server, client
    return made, pods


@pytest.fixture
def north(transactional_db, members):
    made, made.shown = member(members("north"), "a", "b")
    for pod in made.shown:
        made.client.create(EVENTS.path("team"), event(pod, "BackOff"))
    return made


@pytest.fixture
def kubectl(north, admin, tmp_path):
    with served(tmp_path) as made:
        yield made


def test_describe_shows_the_events_of_the_pod_alone(kubectl):
    told = kubectl.as_user("ada").says("describe", "pod", "-n", "team", "a")
    assert "BackOff happened" in told.partition("Events:")[2] and "kubelet" in told
    assert told.count("BackOff happened") == 1


def test_a_list_shows_those_of_all_clusters_in_pages_behind_the_fleets_own(kubectl, members):
    south, (pod,) = member(members("south"), "a")
    south.client.create(EVENTS.path("team"), event(pod, "Pulled"))
    ada = kubectl.as_user("ada")
    for options in ((), ("--chunk-size=1",), ("-oname",)):
        lines = ada.says("get", "events", "-n", "team", *options).splitlines()
        assert len(lines) == 3 + (options != ("-oname",)), lines
    rows = ada.says("get", "events", "-n", "team", "--no-headers").splitlines()
    assert {row.split()[3] for row in rows} == {"pod/a.north", "pod/b.north", "pod/a.south"}
    assert "Pulled" in ada.says("get", "events", "-n", "team", "--field-selector", "reason=Pulled")


def test_what_is_about_no_pod_of_the_fleet_or_of_no_type_of_kubernetes_is_not_shown(kubectl, north):
    pod = north.shown[0]
    foreign = {"metadata": {"name": "daemon", "uid": "u"}}
    north.client.create(EVENTS.path("team"), event(foreign, "Foreign"))
    north.client.create(EVENTS.path("team"), event({"metadata": {**pod["metadata"], "uid": "other"}}, "Former"))
    north.client.create(EVENTS.path("team"), event(pod, "Strange", message="x" * 2000))
    told = kubectl.as_user("ada").says("get", "events", "-n", "team", "-oyaml")
    assert "Strange" in told and "Foreign" not in told and "Former" not in told
    assert "x" * 600 not in told


def test_it_asks_for_the_right_to_read_the_namespace_first(kubectl):
    person("otto", (Grant.Role.EDITOR, "vision"))
    assert "it takes the role viewer in namespace team" in kubectl.as_user("otto").refused(
        "get", "events", "-n", "team"
    )


def test_a_cluster_that_is_away_is_a_warning_beside_the_others(kubectl, north, members):
    south, (pod,) = member(members("south"), "a")
    south.client.create(EVENTS.path("team"), event(pod, "Pulled"))
    north.server.stop()
    told = kubectl.as_user("ada").says("get", "events", "-n", "team")
    assert "cluster north gives no events" in told and "Pulled" in told


def test_a_list_of_all_namespaces_shows_those_that_the_caller_reads(kubectl, north):
    ada = kubectl.as_user("ada")
    rows = ada.says("get", "events", "-A", "--no-headers").splitlines()
    about = {(row.split()[0], row.split()[4]) for row in rows if "pod/" in row}
    assert about == {("team", "pod/a.north"), ("team", "pod/b.north")}
    person("otto", (Grant.Role.VIEWER, "vision"))
    assert "BackOff" not in kubectl.as_user("otto").says("get", "events", "-A")
    person("tina", (Grant.Role.VIEWER, "team"))
    assert kubectl.as_user("tina").says("get", "events", "-A").count("BackOff happened") == 2


def test_a_watch_is_sent_what_is_new_in_the_members_and_nothing_of_the_list_before_again(kubectl, north):
    with kubectl.as_user("ada").running("get", "events", "-n", "team", "-w", "--no-headers") as watching:
        listed = [watching.stdout.readline() for _ in range(2)]
        assert all("BackOff happened" in line for line in listed)
        pod = north.shown[0]
        north.client.create(EVENTS.path("team"), event(pod, "Pulled", lastTimestamp=f"{timezone.now():%FT%TZ}"))
        assert "Pulled happened" in watching.stdout.readline()
        path = EVENTS.path("team", f"{pod['metadata']['name']}.backoff")
        north.client.merge_patch(path, {"count": 4, "message": "again"})
        assert "again" in watching.stdout.readline()


def test_a_watch_without_a_list_begins_with_what_there_is_in_all_namespaces(kubectl, north):
    ada = kubectl.as_user("ada")
    told = ada.says("get", "--raw", "/api/v1/events?watch=1&timeoutSeconds=2")
    assert told.count("BackOff happened") == 2


def test_a_watch_of_one_object_is_sent_its_events_alone(kubectl, north):
    ada = kubectl.as_user("ada")
    told = ada.says("get", "--raw", "/api/v1/events?watch=1&timeoutSeconds=2&fieldSelector=involvedObject.name=a.north")
    assert told.count("BackOff happened") == 1


def test_many_who_read_at_once_ask_a_member_once(kubectl, north, monkeypatch):
    monkeypatch.setattr(member_events, "FRESH_S", 60.0)
    ada, before = kubectl.as_user("ada"), requests_of("north")
    for _ in range(3):
        ada.says("get", "events", "-n", "team")
    assert requests_of("north") - before == 1
