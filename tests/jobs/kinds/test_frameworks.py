"""PaddleJob, XGBoostJob and JAXJob: their roles, what the training operator would refuse, and what is scaled."""

import pytest

from jobs.kinds import registry

KUBEFLOW = "kubeflow.org/v1"
PADDLE, XGBOOST, JAX = (registry.kind_of(KUBEFLOW, kind) for kind in ("PaddleJob", "XGBoostJob", "JAXJob"))


def job(kind, **roles: int) -> dict:
    container = {"name": kind.container, "image": "i", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    template = {"spec": {"containers": [container]}}
    specs = {role: {"replicas": count, "template": template} for role, count in roles.items()}
    head = {"apiVersion": KUBEFLOW, "kind": kind.resource.kind, "metadata": {"name": "x", "namespace": "default"}}
    return {**head, "spec": {kind.key: specs}}


def faults(kind, manifest: dict) -> list[str]:
    return [f"{fault.field}: {fault.detail}" for fault in kind.read(manifest).faults]


@pytest.mark.parametrize(
    ("kind", "roles"),
    [
        (PADDLE, {"Worker": 2}),
        (PADDLE, {"Master": 2, "Worker": 4}),
        (XGBOOST, {"Master": 1, "Worker": 2}),
        (XGBOOST, {"Master": 1}),
        (JAX, {"Worker": 3}),
    ],
)
def test_its_gang_is_all_of_its_roles(kind, roles):
    reading = kind.read(job(kind, **roles))
    assert reading.faults == ()
    assert [(role.name, role.replicas) for role in reading.roles] == [(r.lower(), n) for r, n in roles.items()]
    assert reading.gang == sum(roles.values()) == reading.total()["nvidia.com/gpu"]


@pytest.mark.parametrize(
    ("kind", "roles", "named"),
    [
        (XGBOOST, {"Worker": 2}, "spec.xgbReplicaSpecs.Master: is required"),
        (XGBOOST, {"Master": 2}, "spec.xgbReplicaSpecs.Master.replicas: must be 1"),
        (XGBOOST, {"Master": 0, "Worker": 2}, "spec.xgbReplicaSpecs.Master: is required"),
        (JAX, {"Master": 1, "Worker": 2}, "spec.jaxReplicaSpecs.Master: is no role of this kind"),
        (JAX, {"Worker": 0}, "spec.jaxReplicaSpecs: must ask for at least one pod"),
        (PADDLE, {"PS": 1}, "spec.paddleReplicaSpecs.PS: is no role of this kind"),
    ],
)
def test_it_refuses_what_could_never_run(kind, roles, named):
    assert any(fault.startswith(named) for fault in faults(kind, job(kind, **roles)))


@pytest.mark.parametrize("kind", [PADDLE, XGBOOST, JAX])
def test_it_refuses_a_pod_without_the_container_of_its_framework(kind):
    manifest = job(kind, Master=1, Worker=1) if kind is XGBOOST else job(kind, Worker=1)
    manifest["spec"][kind.key]["Worker"]["template"]["spec"]["containers"][0]["name"] = "main"
    assert any(f"named {kind.container!r}" in fault for fault in faults(kind, manifest))


def test_the_limits_of_an_elastic_paddlejob_are_limits_of_workers():
    manifest = job(PADDLE, Worker=2)
    manifest["spec"]["elasticPolicy"] = {"minReplicas": 3, "maxReplicas": 2}
    assert faults(PADDLE, manifest) == ["spec.elasticPolicy.minReplicas: must be at most maxReplicas (2), not 3"]
    manifest = job(PADDLE, Master=1)
    manifest["spec"]["elasticPolicy"] = {}
    assert faults(PADDLE, manifest) == ["spec.elasticPolicy: needs the role Worker: its limits are limits of workers"]


@pytest.mark.parametrize("kind", [PADDLE, XGBOOST, JAX])
def test_its_workers_are_scaled(kind):
    assert kind.scale["specReplicasPath"] == f".spec.{kind.key}.Worker.replicas"


def test_an_mpijob_is_not_scaled():
    assert registry.kind_of("kubeflow.org/v2beta1", "MPIJob").scale is None
