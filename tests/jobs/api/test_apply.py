"""The door for manifests: what comes in, whose it may be, and bad input, which leaves nothing behind."""

import pytest
from django.utils import timezone

from jobs.models import Dependent, Job, Policy
from jobs.services.submission.changes import actions
from quotas.models import QuotaTree
from quotas.services import documents
from tests.quotas.core.builders import manifest, quota
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db
YAML = "application/yaml"


def apply(client, body, kind: str = YAML, path: str = "apply"):
    return client.generic("POST", f"/api/v1/{path}", body if isinstance(body, bytes) else body.encode(), kind)


def in_vision(text: str) -> str:
    return text.replace("\nmetadata:\n", "\nmetadata:\n  namespace: vision\n")


def expect_refused(client, body, status: int, words: str, **how):
    answer = apply(client, body, **how)
    told = answer.content.decode()
    assert answer.status_code == status and answer["Content-Type"] == "application/problem+json", told
    assert words in told
    assert not Job.objects.exists() and not Policy.objects.exists() and not Dependent.objects.exists()


def test_it_applies_many_documents_and_says_what_became_of_each(as_admin):
    body = POLICY + "---" + "\n" + pytorch_job("llama")
    results = apply(as_admin, body).json()["results"]
    assert [(each["kind"], each["name"], each["action"]) for each in results] == [
        ("PropagationPolicy", "example-policy", "created"),
        ("PyTorchJob", "llama", "created"),
    ]
    again = apply(as_admin, body, path="apply/").json()["results"]
    assert [each["action"] for each in again] == ["unchanged", "unchanged"]


@pytest.mark.parametrize("kind", ["text/yaml", "application/x-yaml", "application/yaml; charset=utf-8"])
def test_it_takes_yaml_under_its_names(as_admin, kind):
    assert apply(as_admin, pytorch_job("llama"), kind).status_code == 200


def test_it_takes_json(as_admin):
    body = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "b"}}'
    assert apply(as_admin, body, "application/json").json()["results"][0]["action"] == "created"


def test_it_lets_an_editor_apply_in_its_namespace_and_nowhere_else(as_editor):
    expect_refused(as_editor, pytorch_job("llama"), 403, "editor in namespace default")
    expect_refused(as_editor, in_vision(pytorch_job("a")) + "---\n" + pytorch_job("b"), 403, "namespace default")
    assert apply(as_editor, in_vision(pytorch_job("llama"))).status_code == 200


def test_it_keeps_cluster_wide_policies_from_editors(as_editor):
    body = POLICY.replace("kind: PropagationPolicy", "kind: ClusterPropagationPolicy")
    expect_refused(as_editor, body, 403, "fleet-admin")


JOB = pytorch_job("llama")
BAD = [
    ("a: [", 400, "line"),
    ("", 400, "no manifest"),
    ("just words", 400, "not an object"),
    (b"\xff\xfe\x00", 400, "UTF-8"),
    ("a: &a [*a]", 400, "a"),
    (JOB.replace("PyTorchJob", "Nonsense"), 422, "Nonsense is not known"),
    (JOB.replace("name: llama", "name: a/b"), 422, "metadata.name"),
    (JOB.replace("name: llama", "name: ''"), 422, "metadata.name"),
    (JOB.replace("metadata:\n  name: llama", "metadata: 7"), 422, "metadata"),
    (JOB.replace("replicas: 2", "replicas: -1"), 422, "replicas"),
    (JOB.replace("nvidia.com/gpu: 1", "nvidia.com/gpu: '1e400'"), 422, "1e400"),
    (JOB + "---\n" + JOB.replace("name: llama", "name: A B"), 422, "[1].metadata.name"),
    (
        POLICY.replace("kind: PyTorchJob", "kind: Deployment").replace("kind: Job}", "kind: DaemonSet}"),
        422,
        "resourceS",
    ),
]


@pytest.mark.parametrize(("body", "status", "words"), BAD, ids=range(len(BAD)))
def test_it_refuses_bad_manifests_whole(as_admin, body, status, words):
    expect_refused(as_admin, body, status, words)


def test_it_refuses_ten_mebibytes_and_names_the_limit(as_admin):
    expect_refused(as_admin, b"#" * (10 * 1024 * 1024), 413, "3 MiB")


def test_it_refuses_what_is_no_manifest_by_its_type(as_admin):
    expect_refused(as_admin, JOB, 415, "application/yaml", kind="application/x-www-form-urlencoded")


def test_it_deletes_what_a_file_names(as_admin):
    body = POLICY + "---\n" + pytorch_job("llama")
    apply(as_admin, body)
    assert [r["action"] for r in apply(as_admin, body, path="delete").json()["results"]] == ["deleted", "deleted"]
    assert [r["action"] for r in apply(as_admin, body, path="delete").json()["results"]] == ["absent", "absent"]


def test_a_job_that_went_meanwhile_is_absent_and_the_others_are_deleted(as_admin, monkeypatch):
    names = "a", "b", "c"
    body = "---\n".join(pytorch_job(name) for name in names)
    apply(as_admin, body)
    delete = actions.delete

    def delete_after_another(job, **how):
        """Once they were read, somebody else has deleted a and begun to delete b."""
        Job.objects.filter(name="a").delete()
        Job.objects.filter(name="b").update(deleting_at=timezone.now())
        return delete(job, **how)

    monkeypatch.setattr(actions, "delete", delete_after_another)
    results = apply(as_admin, body, path="delete").json()["results"]
    assert [each["action"] for each in results] == ["absent", "deleting", "deleted"]


def test_it_deletes_the_quota_tree_a_file_names(as_admin):
    body = documents.write(manifest(quota("root", 8, 8, quota("vision", 4, 8))))
    apply(as_admin, body)
    assert [r["action"] for r in apply(as_admin, body, path="delete").json()["results"]] == ["deleted"]
    assert not QuotaTree.objects.exists()
    assert [r["action"] for r in apply(as_admin, body, path="delete").json()["results"]] == ["absent"]


def test_it_keeps_the_quota_tree_from_editors(as_admin, as_editor):
    body = documents.write(manifest(quota("root", 8, 8)))
    apply(as_admin, body)
    assert apply(as_editor, body, path="delete").status_code == 403
