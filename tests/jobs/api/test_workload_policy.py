"""What a job's pods may ask for in its namespace: checked for every kind at every door, with the field named."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.utils import timezone

from fleet.services.authorization import namespace_policies
from jobs.kinds import registry
from jobs.models import Dependent, Job
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db
EXAMPLES = Path(__file__).resolve().parents[3] / "docs" / "examples"
FILES = sorted(file.name for file in EXAMPLES.glob("*.yaml"))


def apply(client, *documents):
    body = yaml.safe_dump_all(documents).encode()
    return client.generic("POST", "/api/v1/apply/", body, "application/yaml")


def fields(answer) -> list[str]:
    return [error["field"] for error in answer.json().get("errors", [])]


def example(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((EXAMPLES / name).read_text()))


def sabotaged(value: Any) -> Any:
    """The same with every container privileged, or what is in a container's place."""
    if isinstance(value, list):
        return [sabotaged(item) for item in value]
    if not isinstance(value, dict):
        return value
    made = {key: sabotaged(item) for key, item in value.items()}
    for container in made.get("containers", ()) if isinstance(made.get("containers"), list) else ():
        container["securityContext"] = {"privileged": True}
    if made.get("kind") == "SparkApplication":
        made["spec"]["driver"]["securityContext"] = {"privileged": True}
    return made


@pytest.mark.parametrize("name", FILES)
def test_the_examples_are_taken(as_admin, name):
    answer = apply(as_admin, *example("trainingruntime.yaml"), *example(name))
    assert answer.status_code == 200, answer.json()


@pytest.mark.parametrize("name", [name for name in FILES if name not in ("policy.yaml", "trainjob.yaml")])
def test_a_privileged_container_of_any_kind_is_refused_by_its_field(as_admin, name):
    documents = example(name)
    assert documents != sabotaged(copy.deepcopy(documents)), "the example has containers"
    answer = apply(as_admin, *sabotaged(documents))
    assert answer.status_code == 422 and not Job.objects.exists(), answer.json()
    assert any(field.endswith("securityContext.privileged") for field in fields(answer)), fields(answer)


def test_every_kind_has_an_example():
    kinds = {document["kind"] for name in FILES for document in example(name)}
    assert {kind.resource.kind for kind in registry.everything()} - {"PyTorchJob"} <= kinds


def job(change: dict[str, Any], namespace: str = "default", **container: Any) -> dict[str, Any]:
    made: dict[str, Any] = yaml.safe_load(pytorch_job("llama", workers=0))
    made["metadata"]["namespace"] = namespace
    spec = made["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
    spec.update(change)
    spec["containers"][0].update(container)
    return made


def test_an_exception_holds_in_its_namespace_and_nowhere_else(as_admin):
    rdma = {"securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}}
    values = {"capabilities": ["IPC_LOCK"], "host_network": True}
    namespace_policies.save("vision", values, now=timezone.now())
    assert apply(as_admin, job({"hostNetwork": True}, "vision", **rdma)).status_code == 200
    assert sorted(fields(apply(as_admin, job({"hostNetwork": True}, **rdma)))) == [
        "spec.pytorchReplicaSpecs.Master.template.spec.containers[0].securityContext.capabilities.add[0]",
        "spec.pytorchReplicaSpecs.Master.template.spec.hostNetwork",
    ]


def test_a_runtime_in_no_namespace_does_not_smuggle_a_privileged_pod_in(as_admin):
    runtime, train = sabotaged(example("trainingruntime.yaml")), example("trainjob.yaml")
    runtimes = [{**each, "kind": "ClusterTrainingRuntime"} for each in runtime if each["kind"].endswith("Runtime")]
    for each in runtimes:
        each["metadata"].pop("namespace", None)
    jobs = [each for each in train if each["kind"] == "TrainJob"]
    for each in jobs:
        each["spec"]["runtimeRef"] = {**each["spec"]["runtimeRef"], "kind": "ClusterTrainingRuntime"}
        each["spec"]["runtimeRef"]["name"] = runtimes[0]["metadata"]["name"]
    namespace_policies.save("vision", {}, now=timezone.now())
    answer = apply(as_admin, *runtimes, *jobs)
    assert answer.status_code == 422
    assert any("spec.runtimeRef: " in field and "privileged" in field for field in fields(answer)), fields(answer)


def test_a_secret_that_a_cluster_fills_with_credentials_is_refused(as_admin):
    secret = {
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {"name": "t", "annotations": {"kubernetes.io/service-account.name": "default"}},
    }  # fmt: skip
    assert fields(apply(as_admin, secret)) == ["type"] and not Dependent.objects.exists()


def test_what_if_asks_the_same(as_admin):
    text = yaml.safe_dump(job({"hostPID": True}))
    answer = as_admin.post("/api/v1/whatif/", {"add_job": text}, format="json")
    assert answer.status_code == 422 and "hostPID" in answer.content.decode()


def test_an_editor_submits_nothing_into_the_namespaces_of_clusters(as_editor):
    answer = apply(as_editor, job({}, "kube-system"))
    assert answer.status_code == 403 and "fleet-admin" in answer.json()["detail"]
