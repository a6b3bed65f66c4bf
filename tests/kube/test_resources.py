"""Paths of kinds, and the documents a server describes them with."""

from fleet.kube import discovery, resources
from fleet.kube.discovery import Served
from fleet.kube.requests import status

PODS = Served(resources.PODS, short_names=("po",), categories=("all",), subresources=("status", "log", "binding"))
JOBS = Served(resources.PYTORCH_JOBS, subresources=("status", "scale"))


def test_it_spells_the_paths_of_core_and_grouped_kinds():
    assert resources.PODS.path("vision", "llama-0", "log") == "/api/v1/namespaces/vision/pods/llama-0/log"
    assert resources.PYTORCH_JOBS.path() == "/apis/kubeflow.org/v1/pytorchjobs"
    assert resources.NODES.path("ignored", "n1") == "/api/v1/nodes/n1"


def test_it_lets_no_name_leave_its_place_in_a_path():
    assert resources.PODS.path("a/b", "../c") == "/api/v1/namespaces/a%2Fb/pods/..%2Fc"


def test_it_lists_a_kind_with_its_subresources():
    document = discovery.resource_list("v1", [PODS])
    listed = {entry["name"]: entry for entry in document["resources"]}
    assert set(listed) == {"pods", "pods/status", "pods/log", "pods/binding"}
    assert listed["pods"]["shortNames"] == ["po"]
    assert (listed["pods/binding"]["kind"], listed["pods/binding"]["verbs"]) == ("Binding", ["create"])


def test_it_lists_groups_without_the_core_and_each_version_once():
    found = discovery.groups([PODS, JOBS, JOBS])["groups"]
    assert [(each["name"], [v["groupVersion"] for v in each["versions"]]) for each in found] == [
        ("kubeflow.org", ["kubeflow.org/v1"])
    ]


def test_it_names_what_is_missing_in_the_words_clients_look_for():
    told = status.not_found(resources.PYTORCH_JOBS, "llama").as_status()
    assert (told["code"], told["reason"]) == (404, "NotFound")
    assert told["message"] == 'pytorchjobs.kubeflow.org "llama" not found'
    assert told["details"] == {"name": "llama", "kind": "pytorchjobs", "group": "kubeflow.org"}


def test_it_tells_two_conflicts_apart():
    taken, moved = status.already_exists(resources.PODS, "a"), status.changed(resources.PODS, "a")
    assert [(each.code, each.reason) for each in (taken, moved)] == [(409, "AlreadyExists"), (409, "Conflict")]


def test_it_names_the_field_at_fault():
    told = status.invalid(resources.JOBS, "a", "spec.parallelism", "must be 0 or more").as_status()
    assert told["details"]["kind"] == "Job"
    assert told["details"]["causes"][0]["field"] == "spec.parallelism"
