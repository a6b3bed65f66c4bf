"""Manifests of each kind: the gang that is read, and every fault by its field."""

import copy

import pytest
import yaml

from jobs.kinds import registry
from jobs.kinds.base import marked
from jobs.kinds.pods import Reference, references

TEMPLATE = """{spec: {containers: [{name: pytorch, image: x, resources: {limits: {nvidia.com/gpu: 2, cpu: 500m}}}]}}"""
PYTORCH = yaml.safe_load(f"""
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: llama, namespace: default}}
spec:
  pytorchReplicaSpecs:
    Master: {{template: {TEMPLATE}}}
    Worker: {{replicas: 3, template: {TEMPLATE}}}
""")
BATCH = yaml.safe_load("""
apiVersion: batch/v1
kind: Job
metadata: {name: prep, namespace: default}
spec:
  parallelism: 4
  completions: 3
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: x}]}}
""")


def read(manifest: dict):
    return registry.kind_of(manifest["apiVersion"], manifest["kind"]).read(manifest)


def changed(manifest: dict, path: str, value: object) -> dict:
    made = copy.deepcopy(manifest)
    target = made
    *parents, last = path.split("/")
    for word in parents:
        target = target[int(word)] if word.isdigit() else target.setdefault(word, {})
    target[last] = value
    return made


def test_it_reads_a_gang_of_one_master_and_three_workers():
    reading = read(PYTORCH)
    assert reading.faults == () and [(r.name, r.replicas) for r in reading.roles] == [("master", 1), ("worker", 3)]
    assert reading.total() == {"nvidia.com/gpu": 8, "cpu": 2000, "pods": 4}


def test_it_counts_the_pods_of_a_job_as_the_smaller_of_parallelism_and_completions():
    assert read(BATCH).total() == {"pods": 3}


def test_it_folds_the_case_of_role_names_as_the_operator_does():
    lower = {"pytorchReplicaSpecs": {"worker": PYTORCH["spec"]["pytorchReplicaSpecs"]["Worker"]}}
    assert [r.name for r in read({**PYTORCH, "spec": lower}).roles] == ["worker"]


def test_it_reads_a_suspended_job():
    assert read(changed(PYTORCH, "spec/runPolicy", {"suspend": True})).suspended
    assert read(changed(BATCH, "spec/suspend", True)).suspended


ROLES = "spec/pytorchReplicaSpecs"
CONTAINER = f"{ROLES}/Worker/template/spec/containers/0"


@pytest.mark.parametrize(
    ("manifest", "path", "value", "field"),
    [
        (PYTORCH, f"{ROLES}/Worker/replicas", -1, "Worker.replicas"),
        (PYTORCH, f"{ROLES}/Worker/replicas", "two", "Worker.replicas"),
        (PYTORCH, f"{ROLES}/Worker/replicas", 1e9, "Worker.replicas"),
        (PYTORCH, f"{ROLES}/Master/replicas", 2, "Master.replicas"),
        (PYTORCH, f"{ROLES}/PS", {}, "pytorchReplicaSpecs.PS"),
        (PYTORCH, f"{ROLES}/Worker/restartPolicy", "Sometimes", "restartPolicy"),
        (PYTORCH, f"{ROLES}/Worker/template", None, "Worker.template"),
        (PYTORCH, f"{CONTAINER}/name", "main", "containers"),
        (PYTORCH, f"{CONTAINER}/image", "", "image"),
        (PYTORCH, f"{CONTAINER}/resources", {"limits": {"cpu": "1e400"}}, "Worker.template.spec"),
        (PYTORCH, f"{CONTAINER}/resources", "many", "Worker.template.spec"),
        (PYTORCH, f"{ROLES}/Worker/template/spec/volumes", [1], "Worker.template.spec"),
        (PYTORCH, "spec/runPolicy", {"cleanPodPolicy": "Some"}, "cleanPodPolicy"),
        (PYTORCH, "spec/runPolicy", {"managedBy": "kueue.x-k8s.io/multikueue"}, "managedBy"),
        (PYTORCH, "spec/elasticPolicy", {"minReplicas": 4, "maxReplicas": 2}, "minReplicas"),
        (PYTORCH, "spec", None, "spec"),
        (BATCH, "spec/parallelism", 0, "parallelism"),
        (BATCH, "spec/template/spec/restartPolicy", "Always", "restartPolicy"),
        (BATCH, "spec/completionMode", "Sorted", "completionMode"),
        (BATCH, "spec/suspend", "yes", "suspend"),
    ],
)
def test_it_names_the_field_at_fault(manifest, path, value, field):
    faults = read(changed(manifest, path, value)).faults
    assert any(field in fault.field for fault in faults), faults


def test_it_marks_the_job_and_every_pod_template_and_leaves_the_original_alone():
    kind = registry.kind_of("kubeflow.org/v1", "PyTorchJob")
    made = marked(kind, PYTORCH, {"a": "b"})
    assert made["metadata"]["labels"] == {"a": "b"}
    assert [t["metadata"]["labels"] for _, t in kind.templates(made)] == [{"a": "b"}, {"a": "b"}]
    assert "labels" not in PYTORCH["metadata"]


def test_it_finds_everything_a_pod_refers_to():
    spec = yaml.safe_load("""
serviceAccountName: trainer
imagePullSecrets: [{name: registry}]
volumes:
  - {name: a, configMap: {name: settings}}
  - {name: b, secret: {secretName: keys}}
  - {name: c, persistentVolumeClaim: {claimName: data}}
  - {name: d, projected: {sources: [{configMap: {name: more}}]}}
containers:
  - envFrom: [{secretRef: {name: env}}]
    env: [{name: X, valueFrom: {configMapKeyRef: {name: one, key: k}}}]
""")
    names = {"settings", "more", "one"}
    assert references(spec) == {Reference("ConfigMap", name) for name in names} | {
        Reference("Secret", "registry"),
        Reference("Secret", "keys"),
        Reference("Secret", "env"),
        Reference("PersistentVolumeClaim", "data"),
        Reference("ServiceAccount", "trainer"),
    }
