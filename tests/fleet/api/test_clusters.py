"""Clusters over REST: joined from a kubeconfig that a real server stands behind, shown without secrets, and let go."""

import pytest
import yaml

from fleet.models import AuditEntry, Cluster, Event
from simulator.controller_manager import Shape
from simulator.member import SimulatedMember

pytestmark = pytest.mark.django_db
URL = "/api/v1/clusters/"


def kubeconfig(**user) -> str:
    cluster = {"server": "https://127.0.0.1:1", "certificate-authority-data": "eA=="}
    return yaml.safe_dump(
        {
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
            "clusters": [{"name": "x", "cluster": cluster}], "users": [{"name": "x", "user": user}],
        }
    )  # fmt: skip


def test_it_joins_a_member_and_detaches_it(as_admin, tmp_path):
    member = SimulatedMember("north", tmp_path, Shape((), {}))
    member.start()
    try:
        body = {"name": "north", "kubeconfig": yaml.safe_dump(member.kubeconfig()), "labels": {"tier": "gold"}}
        answer = as_admin.post(URL, body, format="json")
        assert answer.status_code == 201, answer.content
        told = answer.json()
        assert (
            (told["state"], told["labels"]) == ("Ready", {"tier": "gold"}) and told["version"] and told["permissions"]
        )
        assert as_admin.post(URL, body, format="json").status_code == 409
        assert as_admin.delete(URL + "north/").status_code == 204 and not Cluster.objects.exists()
    finally:
        member.stop()


def test_it_renews_credentials_without_detaching_and_without_showing_them(as_admin, as_editor, tmp_path):
    member = SimulatedMember("north", tmp_path, Shape((), {}))
    member.start()
    try:
        text = yaml.safe_dump(member.kubeconfig())
        as_admin.post(URL, {"name": "north", "kubeconfig": text}, format="json")
        before = Cluster.objects.get()
        Cluster.objects.update(access={"server": before.server, "token": "expired"})
        body, path = {"kubeconfig": text}, URL + "north/credentials/"
        assert as_editor.put(path, body, format="json").status_code == 403
        assert as_admin.put(path, {"kubeconfig": kubeconfig(token="x")}, format="json").status_code in (422, 503)
        assert as_admin.put(URL + "absent/credentials/", body, format="json").status_code == 404
        answer = as_admin.put(path, body, format="json")
        assert answer.status_code == 200, answer.content
    finally:
        member.stop()
    after = Cluster.objects.get()
    assert (after.uid, after.access) == (before.uid, before.access)
    line = AuditEntry.objects.filter(verb="credentials", outcome="done").get()
    assert (line.actor, line.kind, line.name) == ("ada", "Cluster", "north")
    secrets = [value for key, value in before.access.items() if key in ("token", "client_key_pem") and value]
    shown = answer.content.decode() + str(AuditEntry.objects.values()) + str(Event.objects.values())
    assert secrets and not [secret for secret in secrets if secret in shown]


def checks(client, text: str, name: str = "north") -> list[tuple[str, bool]]:
    answer = client.post(URL + "check/", {"name": name, "kubeconfig": text}, format="json").json()
    assert answer["ok"] == all(check["ok"] for check in answer["checks"])
    return [(check["name"], check["ok"]) for check in answer["checks"]]


def test_it_looks_at_a_member_check_by_check_and_keeps_nothing(as_admin, tmp_path):
    member = SimulatedMember("north", tmp_path, Shape((), {}))
    member.start()
    try:
        good = yaml.safe_dump(member.kubeconfig())
        assert checks(as_admin, good) == [
            (name, True) for name in ("name", "kubeconfig", "answer", "kinds", "rights", "new")
        ]
        assert not Cluster.objects.exists()
    finally:
        member.stop()
    assert checks(as_admin, good) == [("name", True), ("kubeconfig", True), ("answer", False)]


def test_it_says_which_check_failed(as_admin, north):
    assert checks(as_admin, "{}") == [("name", False)]
    assert checks(as_admin, "{}", "south") == [("name", True), ("kubeconfig", False)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (kubeconfig(exec={"command": "sh", "apiVersion": "v1"}), "exec"),
        (kubeconfig(token="t").replace("https:", "http:"), "http"),
        (kubeconfig(tokenFile="/etc/passwd"), "tokenFile"),
        ("a: [", "kubeconfig"),
        ("{}", "kubeconfig"),
    ],
)
def test_it_refuses_a_kubeconfig_with_the_reason(as_admin, text, words):
    answer = as_admin.post(URL, {"name": "north", "kubeconfig": text}, format="json")
    assert 400 <= answer.status_code < 500 and words in answer.content.decode()
    assert not Cluster.objects.exists()


def test_it_says_that_nobody_answers(as_admin):
    secret = "s3cret-of-the-member"
    answer = as_admin.post(URL, {"name": "north", "kubeconfig": kubeconfig(token=secret)}, format="json")
    assert answer.status_code in (422, 503) and secret not in answer.content.decode()


def test_it_shows_what_a_cluster_has_left_and_no_credential(as_viewer, north):
    north.holds.create(job_uid=north.uid, attempt=1, amounts={"nvidia.com/gpu": 2}, pods=2, made_at=north.joined_at)
    told = as_viewer.get(URL).json()["results"][0]
    assert told["capacity"]["nvidia.com/gpu"] == {"allocatable": 8, "requested": 3, "held": 2, "free": 3}
    assert told["gpus"] == told["capacity"]["nvidia.com/gpu"]
    assert told["nodes"] == {"total": 1, "ready": 1} and told["jobs"] == {"running": 0, "placed": 0}
    detail = as_viewer.get(URL + "north/")
    assert "hidden" not in detail.content.decode() and "permissions" in detail.json()


def test_it_counts_gpus_of_every_resource_in_one_total(as_viewer, north):
    north.nodes.create(name="n2", ready=True, allocatable={"aliyun.com/gpu": 8}, requested={"aliyun.com/gpu": 4})
    shared = {
        "aliyun.com/gpu-mem": 128,
        "aliyun.com/gpu-count": 8,
        "huawei.com/Ascend910": 8,
        "nvidia.com/mig-1g.5gb": 7,
    }
    north.nodes.create(name="n3", ready=True, allocatable=shared, requested={"aliyun.com/gpu-mem": 20})
    [told] = as_viewer.get(URL).json()["results"]
    assert told["gpus"] == {"allocatable": 39, "requested": 9, "held": 0, "free": 30}
    nodes = {node["name"]: node["gpus"] for node in as_viewer.get("/api/v1/nodes/").json()["results"]}
    assert nodes["n2"] == {"allocatable": 8, "requested": 4, "reclaimable": 0}
    assert nodes["n3"] == {"allocatable": 23, "requested": 2, "reclaimable": 0}


def test_it_cordons_and_uncordons(as_admin, as_editor, north):
    assert as_admin.post(URL + "north/cordon/").json()["cordoned"] is True
    assert as_admin.post(URL + "north/uncordon/").json()["cordoned"] is False
    assert as_editor.post(URL + "north/cordon/").status_code == 403
    lines = as_editor.get("/api/v1/events/?kind=cluster&name=north").json()["results"]
    assert {each["reason"] for each in lines} == {"ClusterCordoned", "ClusterUncordoned"}


def test_it_drains_a_cluster_and_opens_it_again(as_admin, as_editor, north):
    told = as_admin.post(URL + "north/drain/").json()
    assert (told["drained"], told["cordoned"]) == (True, False)
    assert [(each["key"], each["effect"]) for each in told["taints"]] == [("convoy.dev/drained", "NoExecute")]
    assert as_admin.post(URL + "north/drain/").json()["resource_version"] == told["resource_version"]
    again = as_admin.post(URL + "north/uncordon/").json()
    assert (again["drained"], again["taints"]) == (False, [])
    assert as_editor.post(URL + "north/drain/").status_code == 403


def test_it_changes_labels_and_taints(as_admin, north):
    taint = {"key": "gone", "value": "soon", "effect": "NoSchedule"}
    answer = as_admin.patch(URL + "north/", {"labels": {"a": "b"}, "taints": [taint]}, format="json")
    assert answer.json()["labels"] == {"a": "b"} and answer.json()["taints"][0]["key"] == "gone"
    for bad in ({"labels": {"a b": "c"}}, {"taints": [{"key": "x", "effect": "Never"}]}, {"labels": 7}):
        assert as_admin.patch(URL + "north/", bad, format="json").status_code == 422


def test_it_lists_nodes(as_viewer, north):
    assert [each["name"] for each in as_viewer.get(URL + "north/nodes/").json()["results"]] == ["n1"]
    assert as_viewer.get("/api/v1/nodes/?cluster=north").json()["results"][0]["cluster"] == "north"
    assert as_viewer.get("/api/v1/nodes/?cluster=south").json()["count"] == 0


def test_it_knows_nothing_of_other_names(as_admin):
    for method in ("get", "delete", "patch"):
        answer = getattr(as_admin, method)(URL + "nowhere/", format="json")
        assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")
