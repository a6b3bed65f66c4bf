"""Logs of pods at the fleet, through a stock kubectl: read from the pod's cluster, with the caller's rights, and audited."""

import pytest

from fleet.models import AuditEntry, Grant, Token
from tests.fleet.kubeapi.builders import Member, a_pod
from tests.support.kubectl import served
from tests.support.members import PODS, api, eventually, join, members
from tests.support.people import person

__all__ = ["members"]
pytestmark = pytest.mark.django_db(transaction=True)


class Output:
    """What pods print; the rest of what the server asks of a kubelet."""

    def __init__(self):
        self.text, self.ended, self.restarted = b"", False, False

    def read(self, namespace, name, offset):
        return f"{name}: ".encode() * (offset == 0) + self.text[offset:], self.ended

    def former(self, namespace, name):
        return b"killed\n" if self.restarted else None


@pytest.fixture
def output():
    return Output()


@pytest.fixture
def north(transactional_db, members, output):
    server = members("north", log_source=output)
    member = Member("north", join(server))
    pod = a_pod("llama-master-0", namespace="team", job="llama")
    api(server).create(PODS.path("team"), {key: pod[key] for key in ("metadata", "spec")})
    member.pods(pod)
    member.server = server
    return member


@pytest.fixture
def kubectl(north, admin, tmp_path):
    with served(tmp_path) as made:
        yield made


def test_it_prints_the_log_of_a_pod_by_either_name(kubectl, output):
    ada, output.text, output.ended = kubectl.as_user("ada"), b"one\ntwo\n", True
    assert ada.says("logs", "-n", "team", "llama-master-0") == "llama-master-0: one\ntwo\n"
    assert ada.says("logs", "-n", "team", "llama-master-0.north", "--tail=1") == "two\n"
    assert ada.says("logs", "-n", "team", "-l", "job=llama", "--tail=1", "--prefix") == (
        "[pod/llama-master-0.north/main] two\n"
    )


def test_it_prints_what_a_container_printed_before_its_restart(kubectl, output):
    ada = kubectl.as_user("ada")
    assert 'previous terminated container "main"' in ada.refused("logs", "-n", "team", "llama-master-0", "--previous")
    output.restarted = True
    assert ada.says("logs", "-n", "team", "llama-master-0", "--previous") == "killed\n"
    assert ada.says("logs", "-n", "team", "-l", "job=llama", "-p") == "killed\n"


def test_it_follows_a_log_until_the_reader_leaves(kubectl, output):
    with kubectl.as_user("ada").running("logs", "-f", "-n", "team", "llama-master-0") as following:
        output.text = b"one\n"
        assert "one" in following.stdout.readline()


def test_a_log_that_is_followed_ends_with_the_pod_and_is_refused_in_the_members_words(kubectl, output, north):
    ada, output.text, output.ended = kubectl.as_user("ada"), b"x" * 300_000 + b"\nlast\n", True
    assert ada.says("logs", "-f", "-n", "team", "llama-master-0").endswith(output.text.decode())
    at_once = "--pod-running-timeout=1s"  # kubectl asks again for as long, 20 s unless said
    refused = ada.refused("logs", "-f", "-n", "team", "llama-master-0", "--previous", at_once)
    assert 'previous terminated container "main"' in refused
    north.server.stop()
    assert "cluster north" in ada.refused("logs", "-f", "-n", "team", "llama-master-0", at_once)


def test_it_asks_for_the_role_and_audits_every_log_that_is_read_or_refused(kubectl, north, output):
    output.ended = True
    person("tina", (Grant.Role.VIEWER, "team"))
    person("otto", (Grant.Role.VIEWER, "vision"))
    kubectl.as_user("tina").says("logs", "-n", "team", "llama-master-0")
    path = "/api/v1/namespaces/team/pods/llama-master-0.north/log"
    assert "it takes the role viewer in namespace team" in kubectl.as_user("otto").refused("get", "--raw", path)
    lines = AuditEntry.objects.filter(kind="pods/log").order_by("pk").values_list("actor", "outcome", "namespace")
    assert list(lines) == [("tina", "done", "team"), ("otto", "refused", "team")]


def test_it_names_a_cluster_that_is_away_and_a_pod_that_is_not_there(kubectl, north):
    ada = kubectl.as_user("ada")
    assert 'pods "nobody" not found' in ada.refused("get", "--raw", "/api/v1/namespaces/team/pods/nobody/log")
    north.server.stop()
    assert "cluster north" in ada.refused("logs", "-n", "team", "llama-master-0")


def test_a_log_that_is_followed_ends_soon_after_its_token_was_revoked(kubectl, output):
    with kubectl.as_user("ada").running("logs", "-f", "-n", "team", "llama-master-0") as following:
        output.text = b"one\n"
        following.stdout.readline()
        Token.objects.update(revoked_at="2026-01-01T00:00:00Z")
        eventually(lambda: following.poll() is not None)
