"""What the placement does not look at is refused by its name, and not left pending in a cluster."""

import json
from collections.abc import Iterator

import pytest
import yaml

from deploy.bootstrap.home import ROOT
from jobs.core.gang.requirements import HOSTNAME, AntiAffinity, parse_pod_requirements
from jobs.kinds import registry
from tests.support.world import pytorch_job

EXAMPLES = ROOT / "docs" / "examples"
CLAIMS = [{"name": "gpu", "resourceClaimTemplateName": "two-gpus"}]
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
        ({"resourceClaims": CLAIMS}, "resourceClaims"),
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


def pod_specs(found: object) -> Iterator[dict]:
    """Every pod spec of a manifest."""
    if isinstance(found, dict):
        if "containers" in found:
            yield found
        for value in found.values():
            yield from pod_specs(value)
    elif isinstance(found, list):
        for value in found:
            yield from pod_specs(value)


MANIFESTS = [yaml.safe_load(file.read_text()) for file in sorted(EXAMPLES.glob("*job*.yaml"))]
WITH_PODS = [manifest for manifest in MANIFESTS if [*pod_specs(manifest)]]


@pytest.mark.parametrize("manifest", WITH_PODS, ids=lambda manifest: f"{manifest['apiVersion']} {manifest['kind']}")
def test_devices_that_no_quota_counts_are_refused_in_every_pod_template_of_every_kind(manifest):
    kind = registry.kind_of(manifest["apiVersion"], manifest["kind"])
    for i in range(len([*pod_specs(manifest)])):
        body = json.loads(json.dumps(manifest))
        [*pod_specs(body)][i]["resourceClaims"] = CLAIMS
        assert [fault.field for fault in kind.read(body).faults if fault.field.endswith(".resourceClaims")]
