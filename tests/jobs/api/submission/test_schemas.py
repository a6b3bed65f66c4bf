"""What may be written in the manifests the fleet takes: the same documents that kubectl explains, one place at a time."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs.kinds import registry

pytestmark = pytest.mark.django_db
POD = ("template", "spec")
CONTAINER = (*POD, "containers", "[]")
PODS = {
    "PyTorchJob": ("kubeflow.org/v1", "pytorchReplicaSpecs", "Worker"),
    "TFJob": ("kubeflow.org/v1", "tfReplicaSpecs", "Worker"),
    "PaddleJob": ("kubeflow.org/v1", "paddleReplicaSpecs", "Worker"),
    "XGBoostJob": ("kubeflow.org/v1", "xgbReplicaSpecs", "Worker"),
    "JAXJob": ("kubeflow.org/v1", "jaxReplicaSpecs", "Worker"),
    "MPIJob": ("kubeflow.org/v2beta1", "mpiReplicaSpecs", "Launcher"),
    "TrainingJob": ("kai.alibabacloud.com/v1alpha1", "etReplicaSpecs", "worker"),
    "ElasticJob": ("elastic.iml.github.io/v1alpha1", "replicaSpecs", "worker"),
    "RayJob": ("ray.io/v1", "rayClusterSpec", "workerGroupSpecs", "[]"),
    "JobSet": ("jobset.x-k8s.io/v1alpha2", "replicatedJobs", "[]", "template", "spec"),
    "ClusterTrainingRuntime": (
        "trainer.kubeflow.org/v1alpha1",
        "template",
        "spec",
        "replicatedJobs",
        "[]",
        "template",
        "spec",
    ),
    "Job": ("batch.volcano.sh/v1alpha1", "tasks", "[]"),
}
PLACES = [*((kind, version, role) for kind, (version, *role) in PODS.items()), ("Job", "batch/v1", [])]


def ask(client, api_version: str, kind: str, *path: str):
    return client.get("/api/v1/schemas/fields/", {"api_version": api_version, "kind": kind, "path": path})


def place(client, *asked: str) -> dict:
    answer = ask(client, *asked)
    assert answer.status_code == 200, answer.content
    return answer.json()


def names(found: dict) -> set[str]:
    return {each["name"] for each in found["fields"]}


def test_it_lists_what_apply_takes(as_viewer):
    listed = [(each["api_version"], each["kind"]) for each in as_viewer.get("/api/v1/schemas/").json()["results"]]
    assert {(each.resource.api_version, each.resource.kind) for each in registry.everything()} < set(listed)
    assert {("v1", "ConfigMap"), ("policy.karmada.io/v1alpha1", "OverridePolicy")} < set(listed)
    assert ("scheduling.sigs.k8s.io/v1beta1", "ElasticQuotaTree") in listed


def test_it_tells_something_of_every_kind_it_lists(as_viewer):
    for each in as_viewer.get("/api/v1/schemas/").json()["results"]:
        found = place(as_viewer, each["api_version"], each["kind"])
        assert {"apiVersion", "kind", "metadata"} < names(found) and "status" not in names(found)


@pytest.mark.parametrize(("kind", "version", "role"), PLACES, ids=lambda each: str(each))
def test_it_goes_down_to_the_containers_of_every_kind(as_viewer, kind, version, role):
    assert {"containers", "tolerations"} <= names(place(as_viewer, version, kind, "spec", *role, *POD))
    container = place(as_viewer, version, kind, "spec", *role, *CONTAINER)
    assert [each["name"] for each in container["fields"] if each["required"]] == ["name"]
    limits = place(as_viewer, version, kind, "spec", *role, *CONTAINER, "resources", "limits", "nvidia.com/gpu")
    assert limits["type"] == "int-or-string"


def test_it_tells_name_type_words_and_whether_a_field_is_required(as_viewer):
    [replicas] = [
        each
        for each in place(as_viewer, "kubeflow.org/v1", "PyTorchJob", "spec", "pytorchReplicaSpecs", "Worker")["fields"]
        if each["name"] == "replicas"
    ]
    told = "How many pods the role has; 1 by default."
    assert replicas == {"name": "replicas", "type": "integer", "description": told, "required": False}
    spec = place(as_viewer, "kubeflow.org/v1", "PyTorchJob", "spec")
    assert [each["name"] for each in spec["fields"] if each["required"]] == ["pytorchReplicaSpecs"]


@pytest.mark.parametrize(
    ("asked", "choices"),
    [
        (
            ("kubeflow.org/v1", "PyTorchJob", "spec", "pytorchReplicaSpecs", "Worker", "restartPolicy"),
            ["Always", "OnFailure", "Never", "ExitCode"],
        ),
        (("kubeflow.org/v2beta1", "MPIJob", "spec", "mpiImplementation"), ["OpenMPI", "Intel", "MPICH"]),
        (("kubeflow.org/v1", "PyTorchJob", "spec", "runPolicy", "suspend"), ["true", "false"]),
        (("sparkoperator.k8s.io/v1beta2", "SparkApplication", "spec", "mode"), ["cluster", "client"]),
    ],
)
def test_it_tells_which_values_are_meant(as_viewer, asked, choices):
    assert place(as_viewer, *asked)["choices"] == choices


def test_it_offers_of_metadata_what_people_write(as_viewer):
    metadata = place(as_viewer, "batch/v1", "Job", "metadata")
    assert names(metadata) == {"name", "namespace", "labels", "annotations"}


def test_it_says_nothing_of_places_nobody_described(as_viewer):
    nothing = {"type": "any", "description": "", "fields": [], "choices": []}
    assert place(as_viewer, "batch/v1", "Job", "spec", "nowhere", "at", "all") == nothing


def test_it_names_what_is_wrong_with_a_kind_it_does_not_know(as_viewer):
    answer = ask(as_viewer, "kubeflow.org/v9", "PyTorchJob")
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")
    [fault] = answer.json()["errors"]
    assert fault["field"] == "kind" and "kubeflow.org/v9" in fault["detail"] and "/api/v1/schemas/" in fault["detail"]


@pytest.mark.parametrize("path", [["x"] * 33, ["x" * 254], ["\0"]], ids=["deep", "long", "nul"])
def test_it_refuses_paths_nothing_has(as_viewer, path):
    answer = ask(as_viewer, "batch/v1", "Job", *path)
    assert answer.status_code == 422 and answer.json()["errors"]


def test_it_wants_to_know_the_kind(as_viewer):
    answer = as_viewer.get("/api/v1/schemas/fields/")
    assert answer.status_code == 422
    assert {each["field"] for each in answer.json()["errors"]} == {"api_version", "kind"}


def test_it_is_for_those_who_are_signed_in_and_asks_the_database_nothing_else(as_nobody, as_viewer):
    assert ask(as_nobody, "batch/v1", "Job").status_code == 401
    with CaptureQueriesContext(connection) as signed_in:
        as_viewer.get("/api/v1/session/")
    with CaptureQueriesContext(connection) as asked:
        assert ask(as_viewer, "batch/v1", "Job", "spec").status_code == 200
    assert len(asked) <= len(signed_in)
