"""TFJob: its roles, what a manifest can never mean, and the scheduler that is named where the schema drops it."""

import copy

import pytest
import yaml

from jobs.kinds import registry
from jobs.kinds.base import marked

KIND = registry.kind_of("kubeflow.org/v1", "TFJob")
TEMPLATE = "{spec: {containers: [{name: tensorflow, image: x, resources: {limits: {nvidia.com/gpu: 1}}}]}}"
MNIST = yaml.safe_load(f"""
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {{name: mnist, namespace: default}}
spec:
  schedulerName: volcano
  tfReplicaSpecs:
    Ps: {{replicas: 2, template: {TEMPLATE}}}
    Chief: {{replicas: 1, template: {TEMPLATE}}}
    Worker: {{replicas: 3, template: {TEMPLATE}}}
""")


def with_spec(**fields: object) -> dict:
    made = copy.deepcopy(MNIST)
    made["spec"].update(fields)
    return made


def with_roles(**counts: int) -> dict:
    template = yaml.safe_load(TEMPLATE)
    return with_spec(tfReplicaSpecs={role: {"replicas": n, "template": template} for role, n in counts.items()})


def test_it_reads_the_roles_and_the_total_whatever_the_case_of_their_names():
    reading = KIND.read(MNIST)
    assert reading.faults == () and reading.gang == 6
    assert [(r.name, r.replicas) for r in reading.roles] == [("chief", 1), ("ps", 2), ("worker", 3)]
    assert reading.total() == {"nvidia.com/gpu": 6, "pods": 6}


def test_it_sends_the_scheduler_where_the_api_server_keeps_it():
    made = marked(KIND, MNIST, {})
    assert "schedulerName" not in made["spec"]
    assert {template["spec"]["schedulerName"] for _, template in KIND.templates(made)} == {"volcano"}


def test_it_keeps_the_scheduler_a_role_names_itself():
    given = copy.deepcopy(MNIST)
    given["spec"]["tfReplicaSpecs"]["Ps"]["template"]["spec"]["schedulerName"] = "own"
    schedulers = [template["spec"]["schedulerName"] for _, template in KIND.templates(marked(KIND, given, {}))]
    assert schedulers == ["own", "volcano", "volcano"]


@pytest.mark.parametrize(
    ("roles", "chief"), [(("chief", "worker"), "chief"), (("master",), "master"), (("ps", "worker"), "worker")]
)
def test_its_chief_is_the_chief_or_the_first_worker(roles, chief):
    assert KIND.primary_role(roles) == chief


@pytest.mark.parametrize(
    ("manifest", "field"),
    [
        (with_roles(Chief=2), "Chief.replicas"),
        (with_roles(Chief=1, Master=1), "Master"),
        (with_roles(PS=1), "tfReplicaSpecs"),
        (with_roles(Worker=1, Boss=1), "tfReplicaSpecs.Boss"),
        (with_roles(Worker=0), "tfReplicaSpecs"),
        (with_spec(successPolicy="Most"), "successPolicy"),
        (with_spec(enableDynamicWorker="yes"), "enableDynamicWorker"),
        (with_spec(schedulerName=7), "schedulerName"),
        (with_spec(runPolicy={"schedulingPolicy": {"minAvailable": 0}}), "minAvailable"),
    ],
)
def test_it_names_the_field_at_fault(manifest, field):
    assert any(field in fault.field for fault in KIND.read(manifest).faults)
