"""Each kind that can be resized while it runs is, by what its own operator follows: the pods come and go, no other pod does.

Simulated are the members with their operators, which behave as the public ones (`tests.simulator.operators`).
"""

from typing import Any

import pytest
import yaml
from django.utils import timezone

from fleet.kube.resources import (
    RAY_CLUSTERS,
    RAY_JOBS,
    SCALE_INS,
    SCALE_OUTS,
    TRAINING_JOBS,
    VOLCANO_JOBS,
    VOLCANO_POD_GROUPS,
)
from fleet.models import Hold, Pod
from jobs.core.resizing.stated_bounds import BOUNDS
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


def ray_job(world: World) -> str:
    name, body = job("rayjob")
    endless(body["spec"]["submitterPodTemplate"])
    world.apply(POLICY, yaml.safe_dump(body))
    world.expect(name, "Running")
    return name


def test_the_ray_cluster_of_a_job_gets_its_size_and_so_does_the_next_one(world):
    world.member("north", 8)
    name = ray_job(world)
    before = settled(world, name, 2, "gpus")
    resize(world, name, 4, "gpus")
    assert before.items() < settled(world, name, 4, "gpus").items()
    resize(world, name, 1, "gpus")
    assert settled(world, name, 1, "gpus").items() < before.items()
    client = world.clients["north"]
    [cluster] = client.list(RAY_CLUSTERS.path("default"))["items"]
    copy = client.get(RAY_JOBS.path("default", name))
    assert cluster["metadata"]["name"] == copy["status"]["rayClusterName"]
    for spec in (cluster["spec"], copy["spec"]["rayClusterSpec"]):
        assert [group["replicas"] for group in spec["workerGroupSpecs"]] == [1]


def test_a_volcano_job_is_resized_with_what_has_to_be_available_at_once(world):
    world.member("north", 8)
    name, body = job("volcanojob", **{BOUNDS: "worker=1:5"})
    for task in body["spec"]["tasks"]:
        endless(task["template"])
    world.apply(POLICY, yaml.safe_dump(body))
    world.expect(name, "Running")
    before = settled(world, name, 2)
    resize(world, name, 5)
    assert before.items() < settled(world, name, 5).items()
    client = world.clients["north"]
    copy = client.get(VOLCANO_JOBS.path("default", name))
    assert copy["spec"]["minAvailable"] == 6 and copy["spec"]["tasks"][1]["minAvailable"] == 1
    resize(world, name, 1)
    assert sorted(settled(world, name, 1)) == [f"{name}-worker-0"]
    assert client.get(VOLCANO_JOBS.path("default", name))["spec"]["minAvailable"] == 2
    [group] = client.list(VOLCANO_POD_GROUPS.path("default"))["items"]
    assert group["spec"]["minMember"] == 2 and world.job(name).state == "Running"
