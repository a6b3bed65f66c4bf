"""Objects over a stock kubectl and the real TLS server: written, shown, listed, refused. No member is needed for any of it."""

import json

import pytest

from fleet.models import Grant
from jobs.models import Job
from tests.support.kubectl import served
from tests.support.people import person
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def kubectl(transactional_db, tmp_path):
    with served(tmp_path) as made:
        yield made


@pytest.fixture
def ada(kubectl, admin):
    return kubectl.as_user("ada")


def test_it_applies_shows_and_applies_again_without_change(ada):
    assert "pytorchjob.kubeflow.org/llama created" in ada.says("apply", "-f", "-", given=pytorch_job("llama"))
    assert "unchanged" in ada.says("apply", "-f", "-", given=pytorch_job("llama"))
    header, row = ada.says("get", "pytorchjob").splitlines()
    assert header.split() == ["NAME", "STATE", "AGE"]
    assert row.split()[:2] == ["llama", "Created"]


def test_it_refuses_with_every_field_at_fault(ada):
    told = ada.refused("apply", "-f", "-", given=pytorch_job("llama").replace("replicas: 1", "replicas: -1"))
    assert "replicas" in told and not Job.objects.exists()


def test_it_says_what_is_missing_by_its_name(ada):
    assert '"nobody" not found' in ada.refused("get", "pytorchjob", "nobody")


def test_it_lists_in_pages_by_label_and_by_name(ada):
    for i in range(5):
        ada.says("create", "-f", "-", given=pytorch_job(f"job-{i}"))
    ada.says("label", "pytorchjob", "job-3", "team=vision")
    names = [line.split()[0] for line in ada.says("get", "pytorchjobs", "--chunk-size=2", "--no-headers").splitlines()]
    assert names == [f"job-{i}" for i in range(5)]
    assert ada.says("get", "pytorchjob", "-l", "team=vision", "-oname").split() == ["pytorchjob.kubeflow.org/job-3"]
    found = ada.says("get", "pytorchjob", "--field-selector", "metadata.name=job-1", "-oname")
    assert found.split() == ["pytorchjob.kubeflow.org/job-1"]


def test_it_refuses_a_second_creation_and_a_stale_replacement(ada):
    ada.says("create", "-f", "-", given=POLICY)
    assert "already exists" in ada.refused("create", "-f", "-", given=POLICY)
    old = ada.says("get", "propagationpolicy", "example-policy", "-ojson")
    ada.says("annotate", "propagationpolicy", "example-policy", "note=changed")
    assert "the object has been modified" in ada.refused("replace", "-f", "-", given=old)


def test_it_serves_policies_under_both_of_their_groups(ada):
    ada.says("apply", "-f", "-", given=POLICY)
    for group in ("policy.one.alibabacloud.com", "policy.karmada.io"):
        shown = json.loads(ada.says("get", f"propagationpolicies.v1alpha1.{group}", "example-policy", "-ojson"))
        assert shown["apiVersion"] == f"{group}/v1alpha1"


def test_it_patches_and_deletes(ada):
    ada.says("apply", "-f", "-", given=pytorch_job("llama"))
    ada.says("patch", "pytorchjob", "llama", "--type=merge", "-p", '{"spec":{"runPolicy":{"suspend":true}}}')
    assert Job.objects.get().suspended
    steps = '[{"op":"replace","path":"/spec/runPolicy/suspend","value":false}]'
    ada.says("patch", "pytorchjob", "llama", "--type=json", "-p", steps)
    assert not Job.objects.get().suspended
    assert "deleted" in ada.says("delete", "pytorchjob", "llama")
    assert not Job.objects.exists()


def test_it_tries_a_write_without_doing_it(ada):
    assert "dry run" in ada.says("create", "--dry-run=server", "-f", "-", given=pytorch_job("llama"))
    assert not Job.objects.exists()


def test_it_keeps_what_is_in_a_secret_from_those_who_may_not_write_it(ada, kubectl):
    person("victor", (Grant.Role.VIEWER, "default"))
    ada.says("create", "secret", "generic", "key", "--from-literal=word=hush")
    assert "forbidden" in kubectl.as_user("victor").refused("get", "secret", "key", "-oyaml")
    assert "aHVzaA==" in ada.says("get", "secret", "key", "-oyaml")


def test_it_shows_only_the_namespaces_one_may_read(ada, kubectl, viewer):
    for namespace in ("speech", "vision"):
        ada.says("apply", "-n", namespace, "-f", "-", given=pytorch_job("llama"))
    sam = kubectl.as_user("sam")
    assert [line.split()[0] for line in sam.says("get", "pytorchjob", "-A", "--no-headers").splitlines()] == ["speech"]
    assert "forbidden" in sam.refused("get", "pytorchjob", "-n", "vision")
    assert "forbidden" in sam.refused("delete", "pytorchjob", "llama", "-n", "speech")


def test_it_answers_who_one_is_and_what_one_may(kubectl, ada, viewer):
    sam = kubectl.as_user("sam")
    assert "sam" in sam.says("auth", "whoami")
    assert sam.says("auth", "can-i", "get", "pytorchjobs", "-n", "speech").strip() == "yes"
    assert "no" in sam.tries("auth", "can-i", "create", "pytorchjobs", "-n", "speech").stdout
    assert ada.says("auth", "can-i", "delete", "pytorchjobs").strip() == "yes"


def test_it_lists_clusters_namespaces_and_what_it_serves(ada, north):
    header, row = ada.says("get", "clusters").splitlines()
    assert header.split() == ["NAME", "VERSION", "SCHEDULER", "RESERVATION", "MODE", "READY", "AGE"]
    assert row.split()[0] == "north" and "True" in row
    assert "default" in ada.says("get", "ns")
    assert "pytorchjobs" in ada.says("api-resources")
    assert "policy.karmada.io/v1alpha1" in ada.says("api-versions")


def test_it_tells_what_happened_to_one_object(ada):
    for name in ("llama", "other"):
        ada.says("apply", "-f", "-", given=pytorch_job(name))
    assert ada.says("get", "events").split()[:2] == ["LAST", "SEEN"]
    about = ada.says("events", "--for", "pytorchjob/llama", "--no-headers").splitlines()
    assert len(about) == 1 and "Submitted by ada" in about[0]


def test_it_lists_what_one_may(kubectl, viewer):
    told = kubectl.as_user("sam").says("auth", "can-i", "--list", "-n", "speech")
    line = next(line for line in told.splitlines() if line.startswith("pytorchjobs"))
    assert line.endswith("[get list watch]") and "secrets" not in told


def test_it_takes_what_kubectl_makes_itself(ada, tmp_path):
    (tmp_path / "raw").write_bytes(b"\xff\x00")
    ada.says("create", "configmap", "settings", "--from-literal=depth=12", f"--from-file={tmp_path / 'raw'}")
    shown = json.loads(ada.says("get", "configmap", "settings", "-ojson"))
    assert (shown["data"], shown["binaryData"]) == ({"depth": "12"}, {"raw": "/wA="})
    assert "created" in ada.says("create", "serviceaccount", "trainer")
    assert "job.batch/plain created" in ada.says("create", "job", "plain", "--image=x", "--", "sleep", "1")
    assert ada.says("get", "job", "plain", "-o=jsonpath={..command}") == '["sleep","1"]'
    assert "namespace/vision created" in ada.says("create", "namespace", "vision")


def test_it_asks_for_a_good_token(ada):
    ada.file.write_text(ada.file.read_text().replace("token: cvy_", "token: cvy-"))
    assert "Unauthorized" in ada.refused("get", "--raw", "/api")
