"""What the placement does not look at is refused by its name, and not left pending in a cluster."""

import json

import pytest
import yaml

from jobs.core.gang.requirements import HOSTNAME, AntiAffinity, parse_pod_requirements
from jobs.kinds import registry
from tests.support.world import pytorch_job

KIND = registry.kind_of("kubeflow.org/v1", "PyTorchJob")
NEAR = [{"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": HOSTNAME}]
SPREAD = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "labelSelector": {}}


def job(**spec) -> dict:
    body = json.loads(json.dumps(yaml.safe_load(pytorch_job("llama"))))
    body["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"] |= spec
    return body


def fields(body: dict) -> list[str]:
    return [fault.field.rpartition(".template.spec.")[2] for fault in KIND.read(body).faults]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (
            {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": NEAR}}},
            "affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution",
        ),
        (
            {"topologySpreadConstraints": [{**SPREAD, "whenUnsatisfiable": "DoNotSchedule"}]},
            "topologySpreadConstraints[0].whenUnsatisfiable",
        ),
        ({"topologySpreadConstraints": [SPREAD]}, "topologySpreadConstraints[0].whenUnsatisfiable"),
        ({"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "two-gpus"}]}, "resourceClaims"),
    ],
)
def test_it_is_refused_with_its_field(spec, field):
    assert fields(job(**spec)) == [field]


@pytest.mark.parametrize(
    "spec",
    [
        {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}},
        {"topologySpreadConstraints": [{**SPREAD, "whenUnsatisfiable": "ScheduleAnyway"}]},
        {"topologySpreadConstraints": None, "affinity": None, "resourceClaims": None},
    ],
)
def test_what_is_only_preferred_is_taken(spec):
    assert fields(job(**spec)) == []


def apart(**spec) -> tuple[AntiAffinity, ...]:
    container = {"name": "c", "image": "x", "ports": [{"containerPort": 80, "hostPort": 8476}]}
    template = {"spec": {"containers": [container], **spec}}
    return parse_pod_requirements([("worker", 2, template), ("master", 1, {"spec": {"containers": []}})]).apart


def test_pods_that_listen_on_the_same_port_of_their_node_keep_apart():
    assert apart() == (AntiAffinity(HOSTNAME, "worker", "worker"),)
    assert apart(hostNetwork=True) == (AntiAffinity(HOSTNAME, "worker", "worker"),)
    assert apart(containers=[{"name": "c", "image": "x", "ports": [{"containerPort": 80}]}]) == ()
