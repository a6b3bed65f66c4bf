"""What a client finds beside the objects: their subresources, what it may do with them, and its own namespaces."""

import json

import pytest
from django.utils import timezone

from jobs.services.submission import manifests, submit
from tests.support.kubectl import served
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
CLUSTERS = "/apis/cluster.karmada.io/v1alpha1"


@pytest.fixture
def kubectl(transactional_db, admin, viewer, tmp_path):
    with served(tmp_path) as made:
        yield made


def submitted(*namespaces):
    for each in namespaces:
        [document] = manifests.parse(pytorch_job("llama").encode())
        document["metadata"]["namespace"] = each
        submit.apply([document], by="test", now=timezone.now())


def test_it_lists_subresources_with_their_verbs(kubectl):
    found = json.loads(kubectl.as_user("ada").says("get", "--raw", CLUSTERS))["resources"]
    verbs = {each["name"]: each["verbs"] for each in found}
    assert verbs["clusters/status"] == ["get"] and "patch" in verbs["clusters/proxy"]


def test_a_kubectl_of_today_warns_of_no_difference_between_the_versions(kubectl):
    said = kubectl.as_user("ada").says("version")
    assert "Server Version: v1." in said and "Warning" not in said


def test_it_shows_a_status_and_lets_nobody_write_it(kubectl):
    submitted("default")
    ada = kubectl.as_user("ada")
    assert "llama" in ada.says("get", "pytorchjob", "llama", "--subresource=status")
    told = ada.refused("patch", "pytorchjob", "llama", "--subresource=status", "--type=merge", "-p", '{"status":{}}')
    assert "written by the fleet alone" in told


def test_it_answers_what_one_may_with_subresources(kubectl):
    ada, sam = kubectl.as_user("ada"), kubectl.as_user("sam")
    assert sam.says("auth", "can-i", "get", "clusters", "--subresource=proxy").startswith("yes")
    assert sam.tries("auth", "can-i", "create", "clusters", "--subresource=proxy").stdout.startswith("no")
    assert ada.says("auth", "can-i", "update", "pytorchjobs", "--subresource=scale").startswith("yes")
    assert ada.tries("auth", "can-i", "update", "pytorchjobs", "--subresource=status").stdout.startswith("no")


def test_it_shows_a_viewer_of_a_namespace_that_one(kubectl):
    submitted("speech", "vision")
    sam = kubectl.as_user("sam")
    assert sam.says("get", "ns", "-oname").split() == ["namespace/speech"]
    assert sam.says("get", "ns", "speech", "-oname").strip() == "namespace/speech"
    assert "Forbidden" in sam.refused("get", "ns", "vision")
    assert sam.says("auth", "can-i", "get", "ns/speech").startswith("yes")
