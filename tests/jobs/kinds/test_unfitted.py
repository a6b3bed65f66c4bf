"""What the placement does not look at is refused by its name, and not left pending in a cluster."""

import json
from collections.abc import Iterator

import pytest
import yaml

from deploy.bootstrap.home import ROOT
from jobs.core.gang.requirements import HOSTNAME, AntiAffinity, parse_pod_requirements
from jobs.kinds import device_claims, registry
from tests.support.device_claims import GPUS, template
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
        ({"resourceClaims": [{"name": "gpu"}]}, "resourceClaims[0]"),
        ({"resourceClaims": [{**CLAIMS[0], "resourceClaimName": "mine"}]}, "resourceClaims[0]"),
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
def test_devices_of_claims_are_counted_or_refused_in_every_pod_template_of_every_kind(manifest):
    kind = registry.kind_of(manifest["apiVersion"], manifest["kind"])
    for i in range(len([*pod_specs(manifest)])):
        body = json.loads(json.dumps(manifest))
        [*pod_specs(body)][i]["resourceClaims"] = CLAIMS
        device_claims.resolve(kind, body, lambda *_: template(), {})
        reading = device_claims.read(kind, body)
        assert reading.total().get(GPUS, 0) >= 2 or [
            fault.field for fault in reading.faults if "resourceClaims" in fault.field
        ]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"selectors": [{"cel": {"expression": "true"}}]}, "requests[0].exactly.selectors"),
        ({"allocationMode": "All"}, "requests[0].exactly.allocationMode"),
        ({"adminAccess": True}, "requests[0].exactly.adminAccess"),
        ({"capacity": {"requests": {"memory": "1Gi"}}}, "requests[0].exactly.capacity"),
        ({"count": 0}, "requests[0].exactly.count"),
        ({"count": 33}, "requests"),
        ({"deviceClassName": None}, "requests[0].exactly.deviceClassName"),
    ],
)
def test_a_claim_that_asks_for_more_than_a_number_of_devices_of_a_class_is_refused_with_its_field(change, field):
    for kind, path in (("ResourceClaim", "spec.devices"), ("ResourceClaimTemplate", "spec.spec.devices")):
        faults = device_claims.faults_of(template(kind=kind, **change))
        assert [fault.field for fault in faults] == [f"{path}.{field}"]


@pytest.mark.parametrize(
    "odd", [None, [], {}, {"devices": []}, {"devices": {"requests": [3]}}, {"devices": {"requests": []}}]
)
def test_a_claim_of_another_shape_is_refused(odd):
    claim = {**template(kind="ResourceClaim"), "spec": odd}
    assert device_claims.faults_of(claim) and device_claims.amounts_of(claim) is None


def test_a_role_without_pods_asks_for_no_devices():
    body = job(resourceClaims=CLAIMS)
    body["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = 0
    device_claims.resolve(KIND, body, lambda *_: template(), {})
    reading = device_claims.read(KIND, body)
    assert reading.faults == () and GPUS not in reading.total()


def test_claims_in_the_template_of_sparks_pods_are_refused():
    manifest = yaml.safe_load((EXAMPLES / "sparkapplication.yaml").read_text())
    manifest["spec"]["executor"]["template"] = {"spec": {"containers": [], "resourceClaims": CLAIMS}}
    kind = registry.kind_of(manifest["apiVersion"], manifest["kind"])
    assert [fault.field for fault in kind.read(manifest).faults] == ["spec.executor.template.spec.resourceClaims"]


def test_alternatives_and_constraints_of_a_claim_are_refused():
    claim = template(kind="ResourceClaim")
    claim["spec"]["devices"]["constraints"] = [{"matchAttribute": "example.com/numa"}]
    claim["spec"]["devices"]["requests"].append({"name": "any", "firstAvailable": [{"name": "a"}]})
    assert [fault.field for fault in device_claims.faults_of(claim)] == [
        "spec.devices.constraints",
        "spec.devices.requests[1].firstAvailable",
    ]
