"""The quota tree over REST: read with its use, replaced, patched, previewed, remembered, taken back."""

import pytest
import yaml

from quotas.core.accounts.ledger import Charge
from quotas.services import usage
from tests.quotas.api.builders import START, TREE, edit
from tests.quotas.core.builders import manifest, quota

pytestmark = pytest.mark.django_db


@pytest.fixture
def busy(monkeypatch):
    """b uses 7 of its 4: it borrows what a leaves idle."""
    monkeypatch.setattr(usage, "_admitted", [lambda: [Charge("root/b", {"cpu": 7000, "kube-queue/max-jobs": 1})]])
    monkeypatch.setattr(usage, "_waiting", [lambda: [Charge("root/a", {"cpu": 2000, "kube-queue/max-jobs": 1})]])


def test_it_says_when_there_is_none(as_viewer):
    assert as_viewer.get(TREE).status_code == 404


def test_it_shows_use_borrowing_and_lending_on_every_node(as_viewer, tree, busy):
    shown = as_viewer.get(TREE).json()
    nodes = {each["path"]: each for each in shown["nodes"]}
    cpu = {path: each["resources"]["cpu"] for path, each in nodes.items()}
    assert cpu["root/b"] == {"used": 7000, "requested": 7000, "min": 4000, "max": 9000, "borrowed": 3000, "lent": 0}
    assert cpu["root/a"] == {"used": 0, "requested": 2000, "min": 4000, "max": 8000, "borrowed": 0, "lent": 1000}
    assert cpu["root"]["used"] == 7000 and cpu["root"]["requested"] == 9000
    assert nodes["root/a"]["namespaces"] == ["default"] and not nodes["root/a"]["may_edit"]


def test_it_shows_what_children_are_compared_by_where_they_share_fairly(as_admin, as_viewer, tree, busy, monkeypatch):
    def shares():
        return {each["path"]: each["share"] for each in as_viewer.get(TREE).json()["nodes"]}

    assert set(shares().values()) == {None}
    weights = [edit(attributes={"weight": "3"}), edit("root", attributes={"reclaim": "FairShare"})]
    assert as_admin.patch(TREE, {"changes": weights}, format="json").status_code == 200
    lendable = as_viewer.get(TREE).json()["nodes"][0]["resources"]["cpu"]["max"]
    borrowed = {"borrowed": 3000 / lendable, "recent": None, "entitled": 0.25}
    assert shares() == {"root": None, "root/a": {"borrowed": 0, "recent": None, "entitled": 0.75}, "root/b": borrowed}
    over_time = [
        edit("root", attributes={"reclaim": "Min", "fair-share": "OverTime"}),
        edit("root/b", attributes={"weight": "0"}),
    ]
    monkeypatch.setattr(usage, "_recent", [lambda now: {("root/a", "ada"): 3600.0, ("root/b", "bob"): 7200.0}])
    assert as_admin.patch(TREE, {"changes": over_time}, format="json").status_code == 200
    assert shares()["root/a"]["recent"] == pytest.approx(1 / 3)
    assert shares()["root/b"] == {"borrowed": None, "recent": pytest.approx(2 / 3), "entitled": 0}


def test_it_changes_only_what_is_named(as_admin, tree):
    answer = as_admin.patch(TREE, {"changes": [edit(min={"cpu": "5"})], "generation": 1}, format="json")
    assert answer.json() == {"action": "configured", "generation": 2, "warnings": []}
    root = as_admin.get(TREE).json()["manifest"]["spec"]["root"]
    assert root["children"][0] == {**START["spec"]["root"]["children"][0], "min": {"cpu": "5"}}


@pytest.mark.parametrize(
    ("change", "paths"),
    [
        ({"op": "add", "parent": "root/b", "node": {"name": "c"}}, {"root", "root/a", "root/b", "root/b/c"}),
        ({"op": "remove", "path": "root/a"}, {"root", "root/b"}),
        ({"op": "rename", "path": "root/a", "name": "z"}, {"root", "root/z", "root/b"}),
        ({"op": "move", "path": "root/a", "parent": "root/b"}, {"root", "root/b", "root/b/a"}),
    ],
    ids=lambda each: each["op"] if isinstance(each, dict) else "",
)
def test_it_adds_removes_renames_and_moves_nodes(as_admin, tree, change, paths):
    room = [edit(min={"cpu": "1"}), edit("root/b", min={"cpu": "8"})] if change["op"] == "move" else []
    answer = as_admin.patch(TREE, {"changes": [*room, change]}, format="json")
    assert answer.status_code == 200, answer.json()
    assert {each["path"] for each in as_admin.get(TREE).json()["nodes"]} == paths


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"op": "edit", "path": "root/a", "set": {"mni": {}}}, "set.mni"),
        ({"op": "edit", "path": "root/a"}, "set: must be"),
        ({"op": "move", "path": "root/a", "parent": "root/a"}, "itself or below"),
        ({"op": "remove", "path": "root"}, "below the root"),
        ({"op": "edit", "path": "root/x", "set": {"min": {}}}, "no node root/x"),
        (edit(min={"cpu": 99}), "more than its max"),
    ],
    ids=range(6),
)
def test_it_refuses_a_wrong_change_and_says_what_is_wrong(as_admin, tree, change, told):
    answer = as_admin.patch(TREE, {"changes": [change]}, format="json")
    assert answer.status_code in (404, 422) and told in answer.json()["detail"]
    assert as_admin.get(TREE).json()["generation"] == 1


def test_it_tells_the_second_of_two_who_edit_at_once(as_admin, tree):
    as_admin.patch(TREE, {"changes": [edit(min={"cpu": "3"})], "generation": 1}, format="json")
    answer = as_admin.patch(TREE, {"changes": [edit(max={"cpu": "7"})], "generation": 1}, format="json")
    assert answer.status_code == 409 and "ada changed the quota tree meanwhile" in answer.json()["detail"]


def test_it_remembers_every_generation_and_goes_back(as_admin, tree):
    as_admin.patch(TREE, {"changes": [edit(min={"cpu": "3"})], "comment": "less"}, format="json")
    listed = as_admin.get(f"{TREE}history/").json()["results"]
    assert [(each["generation"], each["comment"], each["by"], each["source"]) for each in listed] == [
        (2, "less", "ada", "rest"), (1, "the first", "ada", "rest"),
    ]  # fmt: skip
    [difference] = as_admin.get(f"{TREE}history/2/").json()["differences"]
    assert (difference["path"], difference["before"]["min"], difference["after"]["min"]) == (
        "root/a", {"cpu": 4}, {"cpu": "3"},
    )  # fmt: skip
    assert as_admin.post(f"{TREE}revert/", {"to": 1, "generation": 2}, format="json").json()["generation"] == 3
    assert as_admin.get(TREE).json()["manifest"] == START


def test_it_goes_on_counting_after_a_deletion(as_admin, tree):
    assert as_admin.delete(TREE).status_code == 204
    assert as_admin.post(f"{TREE}revert/", {"to": 2}, format="json").status_code == 409
    assert as_admin.post(f"{TREE}revert/", {"to": 1}, format="json").json()["generation"] == 3


def test_it_gives_the_file_out_and_takes_it_in_again(as_admin, tree):
    answer = as_admin.get(f"{TREE}manifest/")
    assert yaml.safe_load(answer.content) == START and "attachment" in answer["Content-Disposition"]
    text = answer.content.decode().replace("cpu: 8", "cpu: 7")
    assert as_admin.put(TREE, text, content_type="application/yaml").json()["action"] == "configured"
    assert as_admin.put(TREE, {"yaml": text}, format="json").json()["action"] == "unchanged"


@pytest.mark.parametrize(
    "text",
    ["a: &x 1\nb: *x", "--- {}\n--- {}", "[", "[" * 99, "- 1", "x: .nan", "d: !!timestamp 2026-01-01"],
    ids=range(7),
)
def test_it_refuses_files_it_cannot_keep(as_admin, text):
    assert as_admin.put(TREE, text, content_type="application/yaml").status_code == 400


def test_it_lets_a_lead_change_what_is_below_and_nothing_else(as_admin, as_lead, tree):
    add = {"changes": [{"op": "add", "parent": "root/b", "node": {"name": "night", "max": {"cpu": 3}}}]}
    assert as_lead.patch(TREE, add, format="json").status_code == 200
    assert as_lead.patch(TREE, {"changes": [edit("root/b/night", max={"cpu": 2})]}, format="json").status_code == 200
    refused = as_lead.patch(TREE, {"changes": [edit("root/b", max={"cpu": 10})]}, format="json")
    assert refused.status_code == 403 and "lea leads what is below root/b only" in refused.json()["detail"]
    assert as_lead.delete(TREE).status_code == 403


def test_it_refuses_a_zero_byte(as_admin, tree):
    wrong = {**START, "metadata": {**START["metadata"], "labels": {"a": "\x00"}}}
    assert as_admin.put(TREE, {"manifest": wrong}, format="json").status_code == 400


def test_it_reads_a_large_tree_with_as_few_queries_as_a_small_one(as_viewer, as_admin, django_assert_max_num_queries):
    many = manifest(quota("root", 99, 99, *(quota(f"team-{i}", 1, 9) for i in range(60))))
    assert as_admin.put(TREE, {"manifest": many}, format="json").status_code == 200
    as_viewer.get(TREE)
    with django_assert_max_num_queries(8):
        assert len(as_viewer.get(TREE).json()["nodes"]) == 61
