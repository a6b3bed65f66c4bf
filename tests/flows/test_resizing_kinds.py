"""Each kind that can be resized while it runs is, by what its own operator follows: the pods come and go, no other pod does.

Simulated are the members with their operators, which behave as the public ones (`tests.simulator.operators`).
"""

from typing import Any

import pytest
import yaml
from django.utils import timezone

from fleet.kube.resources import SCALE_INS, SCALE_OUTS, TRAINING_JOBS
from fleet.models import Hold, Pod
from jobs.models import Work
from jobs.services.submission.changes import resizing
from tests.jobs.kinds.builders import EXAMPLES
from tests.jobs.services.resizing import not_over_committed, sizes_agree
from tests.support.world import World

pytestmark = pytest.mark.django_db(transaction=True)
POLICY = (EXAMPLES / "policy.yaml").read_text()


def job(example: str, **notes: str) -> tuple[str, dict[str, Any]]:
    """The example, whose pods do not end by themselves."""
    body = yaml.safe_load((EXAMPLES / f"{example}.yaml").read_text())
    body["metadata"].setdefault("annotations", {}).update(notes)
    return body["metadata"]["name"], body


def endless(template: dict[str, Any]) -> None:
    template.setdefault("metadata", {}).setdefault("annotations", {})["convoy.dev/duration"] = "100h"


def resize(world: World, name: str, replicas: int, role: str = "worker") -> None:
    resizing.resize(world.job(name), {role: replicas}, by="alice", now=timezone.now())


def names(world: World, role: str = "worker") -> dict[str, str]:
    """The role's pods that live, and their uids."""
    return {
        pod["metadata"]["name"]: pod["metadata"]["uid"]
        for pod in world.pods("north")
        if f"-{role}" in pod["metadata"]["name"] and pod["status"].get("phase") in ("Pending", "Running")
    }


def settled(world: World, name: str, replicas: int, role: str = "worker") -> dict[str, str]:
    """Waits until the size is in force, its pods run, and nothing is held beside them; returns the pods."""

    def is_settled() -> bool:
        uid = world.job(name).uid
        known = Pod.objects.filter(job_uid=uid, role=role, phase="Running").exclude(node="").count()
        work = Work.objects.get(job_uid=uid)
        held = Hold.objects.filter(job_uid=uid, released_at=None).exists()
        return len(names(world, role)) == known == replicas and work.resize_done == work.resize_wanted and not held

    world.until(is_settled, f"{name} has {replicas} {role}", patience_s=90)
    sizes_agree()
    not_over_committed(world.job(name).cluster)
    assert world.job(name).attempt == 1
    return names(world, role)


def training_job(world: World, workers: int) -> str:
    name, body = job("trainingjob")
    worker = body["spec"]["etReplicaSpecs"]["worker"]
    worker |= {"replicas": workers, "minReplicas": 1, "maxReplicas": 4}
    for role in body["spec"]["etReplicaSpecs"].values():
        endless(role["template"])
    world.apply(POLICY, yaml.safe_dump(body))
    world.expect(name, "Running")
    return name


def test_a_training_job_is_resized_by_one_scaler_each_time(world):
    world.member("north", 8)
    name = training_job(world, 2)
    before = settled(world, name, 2)
    resize(world, name, 4)
    grown = settled(world, name, 4)
    assert before.items() < grown.items()
    client = world.clients["north"]
    [more] = client.list(SCALE_OUTS.path("default"))["items"]
    assert more["spec"]["toAdd"] == {"count": 2} and more["status"]["phase"] == "ScaleSucceeded"
    resize(world, name, 1)
    left = settled(world, name, 1)
    assert left.items() < before.items() and sorted(left) == [f"{name}-worker-0"]
    [fewer] = client.list(SCALE_INS.path("default"))["items"]
    assert fewer["spec"]["toDelete"]["podNames"] == [f"{name}-worker-{index}" for index in (1, 2, 3)]
    assert not client.list(SCALE_OUTS.path("default"))["items"]
    copy = client.get(TRAINING_JOBS.path("default", name))
    assert copy["status"]["targetWorkers"] == [f"{name}-worker-0"] and copy["status"]["phase"] == "Running"


def test_a_training_job_that_lost_a_worker_in_the_middle_keeps_all_others_when_it_becomes_smaller(world):
    world.member("north", 8)
    name = training_job(world, 3)
    before = settled(world, name, 3)
    world.clients["north"].delete(f"/api/v1/namespaces/default/pods/{name}-worker-1")
    world.until(lambda: Pod.objects.filter(role="worker").count() == 2, "the fleet knows of two")
    resize(world, name, 2)
    assert settled(world, name, 2) == {pod: uid for pod, uid in before.items() if pod != f"{name}-worker-1"}
    assert not world.clients["north"].list(SCALE_INS.path("default"))["items"]
    resize(world, name, 3)
    assert sorted(settled(world, name, 3)) == [f"{name}-worker-{index}" for index in (0, 2, 3)]
