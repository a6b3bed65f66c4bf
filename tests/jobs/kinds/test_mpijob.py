"""MPIJob in its two versions: roles, gang, faults, and whose pod is whose."""

import copy

import pytest
import yaml

from jobs.kinds import registry

V1, V2 = (registry.kind_of(f"kubeflow.org/{version}", "MPIJob") for version in ("v1", "v2beta1"))
TEMPLATE = "{spec: {containers: [{name: x, image: x, resources: {limits: {nvidia.com/gpu: 1}}}]}}"
JOB = yaml.safe_load(f"""
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {{name: ring, namespace: default}}
spec:
  mpiReplicaSpecs:
    Launcher: {{template: {{spec: {{containers: [{{name: x, image: x}}]}}}}}}
    Worker: {{replicas: 4, template: {TEMPLATE}}}
""")


def with_spec(**fields: object) -> dict:
    made = copy.deepcopy(JOB)
    made["spec"].update(fields)
    return made


def with_role(role: str, **fields: object) -> dict:
    made = copy.deepcopy(JOB)
    made["spec"]["mpiReplicaSpecs"][role].update(fields)
    return made


@pytest.mark.parametrize("kind", [V1, V2])
def test_it_reads_a_launcher_without_gpus_and_its_workers(kind):
    reading = kind.read(JOB)
    assert reading.faults == () and reading.total() == {"nvidia.com/gpu": 4, "pods": 5}
    assert [(r.name, r.replicas, r.request.get("nvidia.com/gpu", 0)) for r in reading.roles] == [
        ("launcher", 1, 0),
        ("worker", 4, 1),
    ]
    assert reading.gang == 5 and kind.primary_role(["launcher", "worker"]) == "launcher"


def test_its_workers_do_not_wait_for_a_launcher_that_waits_for_them():
    job = with_spec(launcherCreationPolicy="WaitForWorkersReady")
    assert V2.read(job).gang == 4
    assert [role for role, _ in V2.gang_templates(job)] == ["worker"]
    assert [role for role, _ in V2.gang_templates(JOB)] == ["launcher", "worker"]


@pytest.mark.parametrize(
    ("manifest", "field"),
    [
        (with_role("Launcher", replicas=2), "Launcher.replicas"),
        (with_spec(mpiReplicaSpecs={"Worker": JOB["spec"]["mpiReplicaSpecs"]["Worker"]}), "Launcher"),
        (with_spec(slotsPerWorker=0), "slotsPerWorker"),
        (with_spec(mpiImplementation="LAM"), "mpiImplementation"),
        (with_spec(launcherCreationPolicy="Later"), "launcherCreationPolicy"),
        (with_spec(runLauncherAsWorker=1), "runLauncherAsWorker"),
        (with_spec(runPolicy={"managedBy": "kubeflow.org/training-operator"}), "managedBy"),
    ],
)
def test_it_names_the_field_at_fault(manifest, field):
    assert any(field in fault.field for fault in V2.read(manifest).faults)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"training.kubeflow.org/job-role": "launcher", "batch.kubernetes.io/job-name": "ring"}, ("launcher", 0)),
        ({"training.kubeflow.org/job-role": "worker", "training.kubeflow.org/replica-index": "3"}, ("worker", 3)),
        ({"training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": "2"}, ("worker", 2)),
        ({"batch.kubernetes.io/job-name": "prep", "batch.kubernetes.io/job-completion-index": "1"}, ("worker", 1)),
        ({"app": "web"}, ("", 0)),
    ],
)
def test_a_pod_tells_its_role_whoever_made_it(labels, expected):
    assert registry.pod_role(labels) == expected
