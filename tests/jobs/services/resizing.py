"""Running elastic jobs as rows, their members' reports, and what must hold of their sizes at any time."""

from datetime import datetime, timedelta
from typing import Any

import yaml
from django.utils import timezone

from fleet.changes import events, journal
from fleet.models import Cluster, Hold, Pod
from jobs.kinds import registry
from jobs.models import Job, Work
from jobs.services.submission.changes import resizing
from quotas.core.trees import amounts
from tests.support import books
from tests.support.books import GPU
from tests.support.world import POLICY

LEAF = "quota.scheduling.alibabacloud.com/name"


def elastic(name: str, workers: int = 2, *, least: int = 1, most: int = 8, queue: str = "", **metadata: Any) -> str:
    """A PyTorchJob of workers alone, each with one GPU."""
    container = {"name": "pytorch", "image": "example.com/train", "resources": {"limits": {GPU: 1}}}
    template = {
        "metadata": {"annotations": {"convoy.dev/duration": "100h"}},
        "spec": {"containers": [container]},
    }
    labels = {LEAF: queue} if queue else {}
    body = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name, "labels": labels, **metadata},
        "spec": {
            "elasticPolicy": {"minReplicas": least, "maxReplicas": most},
            "pytorchReplicaSpecs": {"Worker": {"replicas": workers, "template": template}},
        },
    }
    return yaml.safe_dump(body)


def batch(name: str, parallelism: int, completions: int | None = None) -> str:
    container = {"name": "main", "image": "example.com/work", "resources": {"limits": {GPU: 1}}}
    spec: dict[str, Any] = {
        "parallelism": parallelism,
        "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
    }
    if completions is not None:
        spec["completions"] = completions
    return yaml.safe_dump({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec})


VOLCANO = "batch.volcano.sh/v1alpha1"


def volcano(name: str, workers: int, *, bounds: str, at_once: int) -> str:
    """A Volcano Job of workers alone, and a policy that selects it."""
    container = {"name": "main", "image": "example.com/work", "resources": {"limits": {GPU: 1}}}
    task = {
        "name": "worker",
        "replicas": workers,
        "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
    }
    metadata = {"name": name, "annotations": {"convoy.dev/bounds": f"worker={bounds}"}}
    spec = {"minAvailable": at_once, "tasks": [task]}
    policy = yaml.safe_load(POLICY)
    policy["metadata"]["name"] = "volcano"
    policy["spec"]["resourceSelectors"] = [{"apiVersion": VOLCANO, "kind": "Job"}]
    return yaml.safe_dump_all([policy, {"apiVersion": VOLCANO, "kind": "Job", "metadata": metadata, "spec": spec}])


def runs(name: str) -> Job:
    """Places the job, as if its copy had been sent, and all its pods were bound and counted by their nodes."""
    books.cycle()
    books.sent()
    books.report(name, "Running")
    bind(name)
    return books.job(name)


def bind(name: str) -> None:
    """The member has brought the copy to the size in force, its pods are bound, and the watcher has written it."""
    job = books.job(name)
    Work.objects.filter(job_uid=job.uid, attempt=job.attempt).update(resize_done=_wanted(job))
    Hold.objects.filter(job_uid=job.uid).update(released_at=timezone.now())
    before = Pod.objects.filter(job_uid=job.uid).count()
    size = sum(role["replicas"] for role in job.roles)
    for index in range(before, size):
        Pod.objects.create(
            cluster=job.cluster, namespace=job.namespace, name=f"{name}-worker-{index}", uid=f"{job.uid}-{index}",
            job_uid=job.uid, attempt=job.attempt, role="worker", index=index, node="node", phase="Running",
            created_at=timezone.now(),
        )  # fmt: skip
    Pod.objects.filter(job_uid=job.uid, index__gte=size).delete()
    node = job.cluster.nodes.get(name="node")
    in_use = Pod.objects.filter(cluster=job.cluster).count()
    node.requested = {GPU: in_use, "pods": in_use}
    node.save()
    uid = str(job.cluster.uid)
    events.announce([journal.Change("Node", job.cluster.name, "node", uid, journal.Action.MODIFIED)], timezone.now())


def _wanted(job: Job) -> int:
    return Work.objects.get(job_uid=job.uid, attempt=job.attempt).resize_wanted


def resize(name: str, replicas: int, *, role: str = "worker", now: datetime | None = None) -> Job:
    return resizing.resize(books.job(name), {role: replicas}, by="alice", now=now or timezone.now())


def cycle() -> None:
    """A cycle with nothing remembered of the one before."""
    books.cycle(timezone.now() + timedelta(seconds=1))


def size(name: str) -> int:
    job = books.job(name)
    return next(role["replicas"] for role in job.roles if role["name"] == "worker")


def order(name: str) -> Work:
    job = books.job(name)
    return Work.objects.get(job_uid=job.uid, attempt=job.attempt)


def sizes_agree() -> None:
    """The manifest, the roles, the total, the charge and the shown size of every job are of one size, within its bounds."""
    for job in Job.objects.all():
        kind = registry.kind_of(job.api_version, job.kind)
        reading = kind.read(job.manifest)
        assert {r["name"]: r["replicas"] for r in job.roles} == {r.name: r.replicas for r in reading.roles}
        assert job.total == reading.total()
        assert job.charge is None or job.charge == amounts.of_job(job.total)
        for role, bounds in kind.bounds(job.manifest).items():
            replicas = next(r.replicas for r in reading.roles if r.name == role)
            assert job.size == {role: {"replicas": replicas, "min": bounds.least, "max": bounds.most}}
            assert bounds.least <= replicas and (bounds.most is None or replicas <= bounds.most)


def not_over_committed(cluster: Cluster) -> None:
    """What nodes count and what is held is no more than the nodes offer (I2)."""
    offered = sum(node.allocatable[GPU] for node in cluster.nodes.all())
    used = sum(node.requested.get(GPU, 0) for node in cluster.nodes.all())
    held = sum(hold.amounts.get(GPU, 0) for hold in Hold.objects.filter(cluster=cluster, released_at=None))
    assert used + held <= offered, f"{used} in use and {held} held of {offered}"
