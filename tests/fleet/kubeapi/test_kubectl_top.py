"""``kubectl top`` at the fleet: what members measure, put together under the names at the fleet."""

import json
from dataclasses import replace

import pytest

from fleet.models import Grant
from fleet.services.members import member_metrics
from tests.fleet.kubeapi.builders import Member, a_pod
from tests.support.kubectl import served
from tests.support.members import PODS, add_node, api, join, members
from tests.support.people import person

__all__ = ["members"]
pytestmark = pytest.mark.django_db(transaction=True)


def measuring(members, name, **options):
    """A member that runs one pod of the fleet, and one of its own, on one node."""
    server = members(name, **options)
    add_node(server, "n1")
    member = Member(name, join(server))
    member.node("n1")
    for pod in (a_pod("llama-0", namespace="team", job="llama"), a_pod("own", namespace="team")):
        api(server).create(PODS.path("team"), {"metadata": pod["metadata"], "spec": pod["spec"]})
        path = PODS.path("team", pod["metadata"]["name"], "status")
        api(server).merge_patch(path, {"status": {"phase": "Running"}})
    member.pods(a_pod("llama-0", namespace="team", job="llama"))
    member.server = server
    return member


@pytest.fixture
def north(transactional_db, members):
    return measuring(members, "north", measured=True)


@pytest.fixture
def kubectl(transactional_db, north, admin, tmp_path):
    with served(tmp_path) as made:
        yield made


def cells(text):
    return [line.split() for line in text.splitlines()]


def test_it_shows_what_pods_and_nodes_of_all_members_use(kubectl, north, members):
    measuring(members, "south", measured=True)
    ada = kubectl.as_user("ada")
    header, *rows = cells(ada.says("top", "pod", "-n", "team"))
    assert header[:2] == ["NAME", "CPU(cores)"]
    assert sorted(row[0] for row in rows) == ["llama-0.north", "llama-0.south"] and all(row[1] != "0m" for row in rows)
    assert [
        row[0] for row in cells(ada.says("top", "pod", "-A", "--no-headers", "-l", "convoy.dev/cluster=south"))
    ] == ["team"]
    assert cells(ada.says("top", "pod", "llama-0.north", "-n", "team", "--no-headers"))[0][0] == "llama-0.north"
    rows = cells(ada.says("top", "node", "--no-headers"))
    assert [row[0] for row in rows] == ["n1.north", "n1.south"] and rows[0][2].endswith("%")


def test_a_member_that_measures_nothing_or_is_away_is_a_warning(kubectl, north, members):
    measuring(members, "bare")
    away = measuring(members, "south", measured=True)
    away.server.stop()
    done = kubectl.as_user("ada").tries("top", "pod", "-n", "team", "--no-headers")
    assert [row[0] for row in cells(done.stdout)] == ["llama-0.north"] and done.returncode == 0
    assert "cluster bare gives no metrics: it has no metrics server" in done.stderr
    assert "cluster south gives no metrics" in done.stderr


def test_it_takes_a_role_in_the_namespace(kubectl, north):
    person("tina", (Grant.Role.VIEWER, "vision"))
    tina = kubectl.as_user("tina")
    assert "Forbidden" in tina.refused("top", "pod", "-n", "team")
    assert json.loads(tina.says("get", "--raw", "/apis/metrics.k8s.io/v1beta1/pods"))["items"] == []
    assert "n1.north" in tina.says("top", "node")
    assert "NotFound" in kubectl.as_user("ada").refused("top", "pod", "own", "-n", "team")


def test_what_one_member_answers_costs_nobody_the_answer_of_the_others(kubectl, north, members, monkeypatch):
    measuring(members, "south", measured=True)
    rubbish = {"timestamp": "soon", "window": "long", "containers": [{"name": "main", "usage": {"cpu": "much"}}, None]}

    def answered(item):
        return {**item, **rubbish} if "containers" in item else item

    real = member_metrics._measured

    def measured(resource, cluster, namespace):
        answer = real(resource, cluster, namespace)
        spoilt = {key: answered(item) for key, item in answer.items.items()}
        return replace(answer, items=spoilt) if cluster.name == "north" else answer

    monkeypatch.setattr(member_metrics, "_measured", measured)
    rows = {row[0]: row[1] for row in cells(kubectl.as_user("ada").says("top", "pod", "-n", "team", "--no-headers"))}
    assert rows["llama-0.north"] == "0m" and rows["llama-0.south"] not in ("", "0m")
