"""Whose pods are on which GPUs, and how many GPUs there are of each model."""

import uuid

import pytest
from django.utils import timezone

from jobs.models import Job
from tests.support.books import GPU, a_cluster

pytestmark = pytest.mark.django_db


@pytest.fixture
def busy(db):
    """north, with one node behind switch a of which a job in vision has 3 GPUs and a stranger 1."""
    north = a_cluster("north", gpus=8)
    labels = {"nvidia.com/gpu.product": "A100", "topology.kubernetes.io/rack": "a"}
    north.nodes.update(labels=labels, requested={GPU: 4})
    now, role = timezone.now(), {"name": "Worker", "replicas": 1, "request": {GPU: 3}}
    job = Job.objects.create(
        kind="PyTorchJob", api_version="kubeflow.org/v1", namespace="vision", name="llama", manifest={}, roles=[role],
        total={GPU: 3}, gpus=3, leaf="root/vision", created_at=now, queued_at=now, cluster=north,
    )  # fmt: skip
    north.pods.create(
        namespace="vision", name="llama-worker-0", uid="u", job_uid=job.uid, attempt=1, role="Worker", node="node",
        phase="Running", created_at=now,
    )  # fmt: skip
    return job


def test_it_shows_whose_pods_are_on_which_node(as_admin, busy):
    [node] = as_admin.get("/api/v1/gpus/north/").json()["nodes"]
    assert (node["domain"], node["model"], node["gpus"], node["requested"]) == ("a", "A100", 8, 4)
    [pod] = node["pods"]
    assert (pod["id"], pod["name"], pod["gpus"], pod["queue"]) == (str(busy.uid), "llama", 3, "root/vision")


def test_it_names_no_job_of_a_namespace_one_may_not_read(as_viewer, busy):
    [pod] = as_viewer.get("/api/v1/gpus/north/").json()["nodes"][0]["pods"]
    assert (pod["id"], pod["name"], pod["queue"], pod["gpus"]) == ("", "", "", 3)


def hold(job, *, gpus, nodes=("node",)):
    held = {GPU: gpus, "pods": 1}
    job.cluster.holds.create(
        job_uid=job.uid, attempt=1, amounts=held, nodes=[[held, list(nodes)]], pods=1, made_at=job.created_at
    )


def test_it_shows_what_is_held_for_pods_that_are_not_there_yet(as_admin, busy):
    hold(busy, gpus=5)
    [held] = as_admin.get("/api/v1/gpus/north/").json()["nodes"][0]["holds"]
    assert (held["id"], held["name"], held["gpus"]) == (str(busy.uid), "llama", 5 - 3)
    busy.cluster.holds.update(released_at=busy.created_at)
    assert as_admin.get("/api/v1/gpus/north/").json()["nodes"][0]["holds"] == []


def test_it_holds_nothing_twice_and_names_no_hidden_job(as_viewer, busy):
    hold(busy, gpus=3)
    assert as_viewer.get("/api/v1/gpus/north/").json()["nodes"][0]["holds"] == []
    busy.cluster.pods.all().delete()
    [held] = as_viewer.get("/api/v1/gpus/north/").json()["nodes"][0]["holds"]
    assert (held["id"], held["name"], held["gpus"]) == ("", "", 3)


def test_it_leaves_out_pods_whose_job_is_gone(as_admin, busy):
    busy.cluster.pods.update(job_uid=uuid.uuid4())
    assert as_admin.get("/api/v1/gpus/north/").json()["nodes"][0]["pods"] == []


def test_it_counts_gpus_by_model(as_admin, busy):
    [model] = as_admin.get("/api/v1/gpus/").json()["results"]
    assert model == {"cluster": "north", "model": "A100", "nodes": 1, "allocatable": 8, "requested": 4}


def test_it_knows_no_such_cluster(as_admin):
    assert as_admin.get("/api/v1/gpus/nowhere/").status_code == 404
