"""Logs of pods that have ended, through a stock kubectl: shown when the pod, or its whole cluster, is gone."""

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.models import ArchivedLog, AuditEntry, Cluster, EndedPod, Grant
from fleet.services.clusters import clusters
from fleet.services.logs import reading
from tests.fleet.kubeapi.builders import Member, a_pod
from tests.support.kubectl import served
from tests.support.members import PODS, api, join, members
from tests.support.people import person

__all__ = ["members"]
pytestmark = pytest.mark.django_db(transaction=True)
NAME = "llama-master-0"


class Output:
    """What pods print."""

    def __init__(self):
        self.text, self.former_text = b"one\ntwo\n", None

    def read(self, namespace, name, offset):
        return self.text[offset:], True

    def former(self, namespace, name):
        return self.former_text


@pytest.fixture
def output():
    return Output()


class North(Member):
    """A simulated member with pods that end."""

    def __init__(self, server):
        super().__init__("north", join(server))
        self.server = server

    def run(self, name=NAME, restarts=0, containers=("main",), **labels):
        pod = a_pod(name, namespace="team", **labels)
        pod["spec"]["containers"] = [{"name": each, "image": "train:1"} for each in containers]
        created = api(self.server).create(PODS.path("team"), {key: pod[key] for key in ("metadata", "spec")})
        status = {"phase": "Running", "containerStatuses": [
            {"name": each, "image": "train:1", "imageID": "", "ready": True, "restartCount": restarts} for each in containers
        ]}  # fmt: skip
        api(self.server).merge_patch(PODS.path("team", name, "status"), {"status": status})
        self.seen(created["metadata"]["name"])
        return created["metadata"]["uid"]

    def seen(self, name):
        self.pods(api(self.server).get(PODS.path("team", name)))

    def end(self, name=NAME, phase="Succeeded"):
        api(self.server).merge_patch(PODS.path("team", name, "status"), {"status": {"phase": phase}})
        self.seen(name)

    def remove(self, name=NAME):
        api(self.server).delete(PODS.path("team", name), grace_s=0)
        self.lose_pod(name, "team")


@pytest.fixture
def north(transactional_db, members, output):
    return North(members("north", log_source=output))


@pytest.fixture
def kubectl(north, admin, tmp_path):
    with served(tmp_path) as made:
        yield made


@pytest.fixture
def ada(kubectl):
    return kubectl.as_user("ada")


def read_all(now=None):
    for thread in reading.start(lambda: now or timezone.now()):
        thread.join()


def ended(north, **run):
    north.run(**run)
    north.end()
    read_all()


def test_it_prints_the_log_of_a_pod_that_is_gone_by_either_name(ada, north):
    ended(north)
    north.remove()
    assert ada.says("logs", "-n", "team", NAME) == "one\ntwo\n"
    assert ada.says("logs", "-n", "team", f"{NAME}.north", "--tail=1") == "two\n"
    assert ada.says("logs", "-n", "team", NAME, "--timestamps").splitlines()[0].endswith("Z one")
    assert ada.says("logs", "-n", "team", NAME, "--since-time=2027-01-01T00:00:00Z") == ""
    assert ada.says("logs", "-n", "team", NAME, "--since-time=2025-01-01T00:00:00Z", "-f") == "one\ntwo\n"


def test_it_shows_a_pod_that_is_gone_by_name_and_lists_it_no_more(ada, north):
    ended(north)
    north.remove()
    assert "Succeeded" in ada.says("describe", "pod", "-n", "team", NAME)
    assert f"{NAME}.north" in ada.says("get", "pod", "-n", "team", NAME)
    assert ada.says("get", "pods", "-n", "team", "-oname") == ""


def test_it_prints_the_log_when_the_cluster_does_not_answer_and_when_it_has_left(ada, north):
    ended(north)
    north.server.stop()
    assert ada.says("logs", "-n", "team", NAME) == "one\ntwo\n"
    Cluster.objects.update(state="Unknown")
    assert ada.says("logs", "-n", "team", NAME) == "one\ntwo\n"
    clusters.detach(Cluster.objects.get(), by="ada", now=timezone.now(), force=True)
    assert ada.says("logs", "-n", "team", f"{NAME}.north") == "one\ntwo\n"
    assert "north" in ada.says("describe", "pod", "-n", "team", NAME)


def test_each_container_and_its_run_before_are_kept(ada, north, output):
    output.former_text = b"killed\n"
    ended(north, restarts=1, containers=("main", "sidecar"))
    north.remove()
    assert ada.says("logs", "-n", "team", NAME, "-c", "main", "--previous") == "killed\n"
    assert ada.says("logs", "-n", "team", NAME, "-c", "sidecar") == "one\ntwo\n"
    assert "container nobody is not valid" in ada.refused("logs", "-n", "team", NAME, "-c", "nobody")


def test_without_a_run_before_previous_is_refused_as_a_cluster_does(ada, north):
    ended(north)
    north.remove()
    assert 'previous terminated container "main"' in ada.refused("logs", "-n", "team", NAME, "--previous")


def test_rights_and_audit_are_those_of_a_log_that_is_read_live(kubectl, north):
    ended(north)
    north.remove()
    person("tina", (Grant.Role.VIEWER, "team"))
    person("otto", (Grant.Role.VIEWER, "vision"))
    kubectl.as_user("tina").says("logs", "-n", "team", NAME)
    path = f"/api/v1/namespaces/team/pods/{NAME}.north/log"
    assert "it takes the role viewer in namespace team" in kubectl.as_user("otto").refused("get", "--raw", path)
    assert "it takes the role viewer" in kubectl.as_user("otto").refused("get", "pod", "-n", "team", NAME)
    lines = AuditEntry.objects.filter(kind="pods/log").order_by("pk").values_list("actor", "outcome", "namespace")
    assert list(lines) == [("tina", "done", "team"), ("otto", "refused", "team")]


def test_a_live_pod_of_the_name_comes_before_the_ended_one(ada, north, output):
    ended(north)
    north.remove()
    north.run()
    output.text = b"second run\n"
    assert ada.says("logs", "-n", "team", NAME) == "second run\n"
    north.end()
    read_all()
    north.remove()
    assert ada.says("logs", "-n", "team", NAME) == "second run\n"


def test_a_pod_that_is_gone_before_its_log_was_read_says_so(ada, north):
    north.run()
    north.end()
    assert "has not been read from north yet" in _after(ada, north.remove)
    read_all()
    assert "gone from its cluster before its log was read" in ada.refused("logs", "-n", "team", NAME)


def _after(ada, action):
    action()
    return ada.refused("logs", "-n", "team", NAME)


def test_the_log_of_another_pod_that_took_the_name_is_not_taken_for_it(ada, north, output):
    north.run()
    north.end()
    north.remove()
    output.text = b"a secret of the next\n"
    north.run()
    read_all()
    assert EndedPod.objects.get().state == "Lost" and not ArchivedLog.objects.exists()


def test_nothing_is_kept_of_a_cluster_that_decides_itself_who_reads(ada, north):
    Cluster.objects.update(impersonation=True)
    north.run()
    north.end()
    assert not EndedPod.objects.exists()


def test_pods_of_one_name_in_two_clusters_are_named_by_their_clusters(ada, north, members, output):
    ended(north)
    north.remove()
    now = timezone.now() - timedelta(hours=1)
    [pod] = EndedPod.objects.all()
    pod.pk, pod.ref, pod.cluster, pod.cluster_name, pod.cluster_uid = None, "0" * 32, None, "south", "1" * 32
    pod.ended_at = now
    pod.save()
    assert f"name one of {NAME}.north, {NAME}.south" in ada.refused("logs", "-n", "team", NAME)
    assert ada.says("logs", "-n", "team", f"{NAME}.north") == "one\ntwo\n"
