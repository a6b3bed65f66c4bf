"""A hostile editor, who has read the Pod Security Standards and the documentation of the operators, tries to get out of a pod.

Each way out, in the pods of every kind and through every API, is refused by its field, and nothing is stored.
"""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from fleet.models import Grant
from jobs.models import Dependent, Job, Policy
from tests.attacks.kube_door import PROXY, Door
from tests.support.members import join, members, north
from tests.support.people import client_of, person
from tests.support.world import pytorch_job

__all__ = ["members", "north"]
EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
KINDS = sorted(
    file.stem for file in EXAMPLES.glob("*.yaml") if file.stem not in ("policy", "sparkapplication", "trainjob")
)
UNCONFINED = {"type": "Unconfined"}
ESCAPES: dict[str, dict[str, Any]] = {
    "hostNetwork": {"hostNetwork": True},
    "hostPID": {"hostPID": True},
    "hostIPC": {"hostIPC": True},
    "hostPath": {"volumes": [{"name": "root", "hostPath": {"path": "/"}}]},
    "nodeName": {"nodeName": "node-1"},
    "sysctls": {"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}},
    "windowsOptions": {"securityContext": {"windowsOptions": {"hostProcess": True}}},
    "seccompProfile": {"securityContext": {"seccompProfile": UNCONFINED}},
    "appArmorProfile": {"securityContext": {"appArmorProfile": UNCONFINED}},
    "seLinuxOptions": {"securityContext": {"seLinuxOptions": {"type": "spc_t"}}},
    "priorityClassName": {"priorityClassName": "system-node-critical"},
    "initContainers": {"initContainers": [{"name": "i", "image": "x", "securityContext": {"privileged": True}}]},
    "ephemeralContainers": {"ephemeralContainers": [{"name": "e", "image": "x", "securityContext": {"procMount": "Unmasked"}}]},
    "capabilities": {"initContainers": [{"name": "i", "image": "x", "securityContext": {"capabilities": {"add": ["BPF"]}}}]},
    "hostPort": {"initContainers": [{"name": "i", "image": "x", "ports": [{"containerPort": 1, "hostPort": 22}]}]},
    "postStart": {"initContainers": [{"name": "i", "image": "x", "lifecycle": {"postStart": {"httpGet": {"host": "a"}}}}]},
}  # fmt: skip
ANNOTATIONS = {
    "container.apparmor.security.beta.kubernetes.io/c": "unconfined",
    "seccomp.security.alpha.kubernetes.io/pod": "unconfined",
    "container.seccomp.security.alpha.kubernetes.io/c": "unconfined",
}
SPARK = {
    "spark.kubernetes.namespace": "kube-system", "spark.master": "k8s://https://10.0.0.1", "spark.submit.deployMode": "client",
    "spark.kubernetes.driver.podTemplateFile": "/x", "spark.kubernetes.executor.volumes.hostPath.x.mount.path": "/",
    "spark.kubernetes.driver.annotation.container.apparmor.security.beta.kubernetes.io/x": "unconfined",
    "spark.kubernetes.authenticate.submission.oauthTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
    "spark.executor.instances": "1000", "spark.dynamicAllocation.enabled": "true", "spark.executor.memory": "900g",
    "spark.executor.resource.gpu.amount": "8", "spark.kubernetes.executor.request.cores": "64",
}  # fmt: skip
"""Where the operator would read more, or elsewhere, than the fields that were judged and counted."""


def rows() -> list[int]:
    return [Job.objects.count(), Dependent.objects.count(), Policy.objects.count()]


@pytest.fixture
def editor(db: None) -> Any:
    return person("mal", (Grant.Role.EDITOR, "team"))


def in_team(documents: Any) -> list[dict[str, Any]]:
    placed = copy.deepcopy(list(documents))
    for document in placed:
        document["kind"] = document["kind"].removeprefix("Cluster")
        document["metadata"]["namespace"] = "team"
    return placed


def example(name: str) -> list[dict[str, Any]]:
    return in_team(yaml.safe_load_all((EXAMPLES / f"{name}.yaml").read_text()))


def pods(value: Any) -> Iterator[dict[str, Any]]:
    """Every pod spec, wherever it stands."""
    if isinstance(value, dict):
        if isinstance(value.get("containers"), list):
            yield value
        for inner in value.values():
            yield from pods(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from pods(inner)


def applied(client: Any, documents: list[dict[str, Any]]) -> tuple[int, str]:
    answer = client.generic("POST", "/api/v1/apply/", yaml.safe_dump_all(documents), content_type="application/yaml")
    return answer.status_code, answer.content.decode()


@pytest.mark.parametrize("kind", KINDS)
def test_no_pod_of_any_kind_gets_out(editor: Any, kind: str) -> None:
    """16 ways in each pod of a kind, one pod at a time."""
    client, before, tried = client_of(editor), rows(), 0
    for name, change in ESCAPES.items():
        for index in range(len(list(pods(example(kind))))):
            documents = example(kind)
            list(pods(documents))[index].update(copy.deepcopy(change))
            status, text = applied(client, documents)
            assert status == 422 and name in text, (name, index, status, text[:300])
            tried += 1
    assert tried >= len(ESCAPES) and rows() == before


@pytest.mark.parametrize("annotation", ANNOTATIONS)
def test_no_annotation_takes_the_confinement_away(editor: Any, annotation: str) -> None:
    job = yaml.safe_load(pytorch_job("llama", workers=0))
    job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["metadata"] = {"annotations": {annotation: "unconfined"}}
    status, text = applied(client_of(editor), in_team([job]))
    assert status == 422 and annotation in text and rows() == [0, 0, 0]
    job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["metadata"] = {
        "annotations": {annotation: "runtime/default"}
    }
    assert applied(client_of(editor), in_team([job]))[0] == 200


@pytest.mark.parametrize("field", SPARK)
def test_no_property_of_spark_does_what_its_fields_may_not(editor: Any, field: str) -> None:
    document = example("sparkapplication")[-1]
    assert applied(client_of(editor), [document])[0] == 200
    Job.objects.all().delete()
    document["spec"]["sparkConf"] = {field: SPARK[field]}
    status, text = applied(client_of(editor), [document])
    assert status == 422 and field in text and rows() == [0, 0, 0], text


@pytest.mark.parametrize("field", ["podSpecOverrides", "podTemplateOverrides", "runtimePatches"])
def test_no_change_to_a_runtime_gets_out(editor: Any, field: str) -> None:
    client, runtime = client_of(editor), example("trainingruntime")
    for change in ({"hostPID": True}, {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}, {"nodeName": "n"}):
        document = example("trainjob")[-1]
        document["spec"]["runtimeRef"]["kind"] = "TrainingRuntime"
        spec = {"targetJobs": [{"name": "node"}], "spec": change, "trainingRuntimeSpec": {"template": {"spec": change}}}
        document["spec"][field] = [spec]
        status, text = applied(client, [*runtime, document])
        assert status == 422 and next(iter(change)) in text, (status, text[:300])
    assert not Job.objects.exists()


WRITES = (
    ("POST", "", "application/json"), ("POST", "", "application/yaml"), ("PATCH", "/fresh", "application/apply-patch+yaml"),
    ("PUT", "/good", "application/json"), ("PATCH", "/good", "application/apply-patch+yaml"),
    ("PATCH", "/good", "application/merge-patch+json"),
)  # fmt: skip


@pytest.mark.django_db(transaction=True)
def test_kubectl_gets_none_of_it_in_by_create_apply_replace_or_patch(transactional_db: None) -> None:
    door = Door(person("mal", (Grant.Role.EDITOR, "team")))
    path = "/apis/kubeflow.org/v1/namespaces/team/pytorchjobs"
    good = in_team([yaml.safe_load(pytorch_job("good", workers=0))])[0]
    assert door.ask("POST", path, json.dumps(good).encode())[0] == 201
    stored = Job.objects.get().manifest
    for name, change in ESCAPES.items():
        for method, end, kind in WRITES:
            bad = copy.deepcopy(good)
            bad["metadata"]["name"] = end.strip("/") or "bad"
            next(pods(bad)).update(copy.deepcopy(change))
            code, answer = door.ask(
                method, path + end, json.dumps(bad).encode(), kind, FORCED if "apply" in kind else ""
            )
            assert code in (403, 422) and name in json.dumps(answer), (name, method, kind, code, answer)
        patch = [{"op": "add", "path": f"/spec/pytorchReplicaSpecs/Master/template/spec/{key}", "value": value}
                 for key, value in change.items()]  # fmt: skip
        code, answer = door.ask("PATCH", f"{path}/good", json.dumps(patch).encode(), "application/json-patch+json")
        assert code in (403, 422) and name in json.dumps(answer), (name, code, answer)
    assert Job.objects.get().manifest == stored


FORCED = "fieldManager=x&force=true"
PROXIED = {
    "a key in base64": ("POST", b"spec: {? !!binary aG9zdFBJRA== : true}", "application/yaml"),
    "the second of two documents": ("POST", b"spec: {}\n---\nspec: {hostPID: true}", "application/yaml"),
    "the first of two documents": ("POST", b"spec: {hostPID: true}\n---\nspec: {}", "application/yaml"),
    "an old word for true": ("POST", b"spec: {hostPID: yes}", "application/yaml"),
    "a merge": ("POST", b"x: &x {hostPID: true}\nspec: {<<: *x}", "application/yaml"),
    "UTF-16": ("POST", "spec: {hostPID: true}".encode("utf-16"), "application/yaml"),
    "capitals": ("POST", b"spec: {hostPID: true}", "Application/YAML"),
    "a parameter": ("POST", b'{"spec":{"hostPID":true}}', "application/json; charset=utf-8"),
    "no content type": ("POST", b'{"spec":{"hostPID":true}}', ""),
    "an escaped key": ("POST", b'{"spec":{"host\\u0050ID":true}}', "application/json"),
    "a list of objects": ("POST", b'{"kind":"List","items":[{"spec":{"hostPID":true}}]}', "application/json"),
    "CBOR": ("POST", b"\xd9\xd9\xf7\xa1dspec\xa1ghostPID\xf5", "application/cbor"),
    "CBOR in capitals": ("POST", b"\xd9\xd9\xf7\xa1dspec\xa1ghostPID\xf5", "APPLICATION/CBOR"),
    "a pointer with escapes": (
        "PATCH",
        b'[{"op":"add","path":"/spec/host~0PID/../hostPID","value":true}]',
        "json-patch",
    ),
    "a whole replaced": ("PATCH", b'[{"op":"replace","path":"","value":{"spec":{"hostPID":true}}}]', "json-patch"),
    "a patch in capitals": (
        "PATCH",
        b'[{"op":"add","path":"/spec/hostPID","value":true}]',
        "Application/JSON-Patch+JSON",
    ),
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("trick", PROXIED)
def test_no_way_of_writing_it_gets_through_the_proxy(north: Any, trick: str) -> None:
    join(north)
    door, (method, body, kind) = Door(person("mal", (Grant.Role.EDITOR, "team"))), PROXIED[trick]
    kind = "application/json-patch+json" if kind == "json-patch" else kind
    home = f"{PROXY}/api/v1/namespaces/team/pods"
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    assert door.ask("POST", home, json.dumps(pod).encode())[0] == 201
    code, answer = door.ask(method, home + ("/a" if method == "PATCH" else ""), body, kind)
    assert 400 <= code < 500, (code, answer)
    assert "hostPID" not in json.dumps(door.ask("GET", home)[1])
