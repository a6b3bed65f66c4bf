"""A worker is killed -9 before and after everything it does to bring a copy to another size, for each kind by what its operator
follows: the copy of a Volcano Job, the RayCluster of a RayJob, the objects beside a TrainingJob.

`tests.faults.test_resize_kills` kills in the whole of a resize; what comes before the copy is the same for all kinds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from django.utils import timezone

from fleet.kube.resources import (
    PODS,
    RAY_CLUSTERS,
    RAY_JOBS,
    SCALE_INS,
    SCALE_OUTS,
    TRAINING_JOBS,
    VOLCANO_JOBS,
    Resource,
)
from fleet.models import Event, Hold
from jobs.models import Job, Work
from jobs.services.dispatch import dispatcher
from jobs.services.lifecycle import works
from jobs.services.submission.changes import resizing as service
from tests.faults.builders import Killer
from tests.jobs.kinds.builders import EXAMPLES
from tests.jobs.services import resizing
from tests.support import books
from tests.support.world import World

pytestmark = pytest.mark.django_db(transaction=True)
NAME, AT_FIRST = "resized", 20
"""Each kill takes one worker."""
PATIENCE = 6
"""Pushes that any resize takes at most, once its worker has died."""


class Member:
    """One copy in a member whose operator is this class."""

    role = "worker"
    kind: Resource

    def __init__(self, world: World) -> None:
        self.client = world.clients["north"]
        self.path = self.kind.path("default", NAME)

    def manifest(self) -> dict[str, Any]:
        body: dict[str, Any] = yaml.safe_load((EXAMPLES / f"{self.kind.kind.lower()}.yaml").read_text())
        body["metadata"] |= {"name": NAME, "namespace": "default"}
        return body

    def begins(self) -> None:
        """The operator has begun with the copy."""

    def follows(self) -> None:
        """The operator does what was asked of it."""

    def size(self) -> int:
        raise NotImplementedError

    def judge(self) -> None:
        """What holds at any moment, beside the size."""


class Volcano(Member):
    kind = VOLCANO_JOBS

    def manifest(self) -> dict[str, Any]:
        texts = yaml.safe_load_all(resizing.volcano(NAME, AT_FIRST, bounds=f"1:{AT_FIRST}", at_once=AT_FIRST))
        return next(body for body in texts if body["kind"] == "Job")

    def size(self) -> int:
        spec = self.client.get(self.path)["spec"]
        assert spec["minAvailable"] == spec["tasks"][0]["replicas"], "Volcano refuses what is not of one size"
        return int(spec["tasks"][0]["replicas"])


class Ray(Member):
    kind = RAY_JOBS

    def manifest(self) -> dict[str, Any]:
        body = super().manifest()
        [group] = body["spec"]["rayClusterSpec"]["workerGroupSpecs"]
        group |= {"groupName": self.role, "replicas": AT_FIRST, "minReplicas": 1, "maxReplicas": AT_FIRST}
        return body

    def begins(self) -> None:
        copy = self.client.get(self.path)
        keys = {key: value for key, value in copy["metadata"]["labels"].items() if key.startswith("convoy.dev")}
        head = {"apiVersion": RAY_CLUSTERS.api_version, "kind": RAY_CLUSTERS.kind}
        made = {"name": f"{NAME}-x", "namespace": "default", "labels": keys}
        self.client.create(
            RAY_CLUSTERS.path("default"), {**head, "metadata": made, "spec": copy["spec"]["rayClusterSpec"]}
        )
        status = {"jobDeploymentStatus": "Running", "rayClusterName": f"{NAME}-x"}
        self.client.merge_patch(f"{self.path}/status", {"status": status})

    def size(self) -> int:
        made = self.client.get(RAY_CLUSTERS.path("default", f"{NAME}-x"))
        return int(made["spec"]["workerGroupSpecs"][0]["replicas"])


class Training(Member):
    kind = TRAINING_JOBS

    def manifest(self) -> dict[str, Any]:
        body = super().manifest()
        worker = body["spec"]["etReplicaSpecs"]["worker"]
        worker |= {"replicas": AT_FIRST, "minReplicas": 1, "maxReplicas": AT_FIRST}
        return body

    def begins(self) -> None:
        self.client.merge_patch(f"{self.path}/status", {"status": {"phase": "Running"}})
        labels = {
            k: v for k, v in self.client.get(self.path)["metadata"]["labels"].items() if k.startswith("convoy.dev")
        }
        labels |= {"group-name": TRAINING_JOBS.group, "training-job-role": "worker"}
        for index in range(AT_FIRST):
            metadata = {"name": f"{NAME}-worker-{index}", "namespace": "default"}
            metadata["labels"] = {**labels, "replica-index": str(index)}
            body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
            self.client.create(PODS.path("default"), {**body, "spec": {"containers": [{"name": "w", "image": "i"}]}})

    def follows(self) -> None:
        for scaler in self._under_way():
            for name in scaler["spec"]["toDelete"]["podNames"]:
                self.client.delete(PODS.path("default", name), grace_s=0)
            status = {"conditions": [{"type": "ScaleSucceeded", "status": "True"}]}
            path = SCALE_INS.path("default", scaler["metadata"]["name"])
            self.client.merge_patch(f"{path}/status", {"status": status})

    def size(self) -> int:
        return len(self.client.list(PODS.path("default"))["items"])

    def judge(self) -> None:
        assert not self.client.list(SCALE_OUTS.path("default"))["items"]
        under_way = self._under_way()
        leaving = [name for scaler in under_way for name in scaler["spec"]["toDelete"]["podNames"]]
        assert len(under_way) <= 1 and leaving in ([], [f"{NAME}-worker-{self.size() - 1}"])

    def _under_way(self) -> list[dict[str, Any]]:
        scalers = self.client.list(SCALE_INS.path("default"))["items"]
        return [each for each in scalers if not (each.get("status") or {}).get("conditions")]


@dataclass
class Scene:
    member: Member
    wanted: int = AT_FIRST

    def smaller(self) -> Work:
        """One worker fewer is decided; returns the work, which is due."""
        self.wanted -= 1
        service.resize(books.job(NAME), {self.member.role: self.wanted}, by="alice", now=timezone.now())
        return Work.objects.get(name=NAME)

    def recover(self, work: Work) -> None:
        """What the sweep does once the claim of the dead worker has grown old, and the operator meanwhile."""
        for _ in range(PATIENCE):
            self.member.judge()
            self.member.follows()
            if not works.resizing().filter(pk=work.pk).exists():
                return
            Work.objects.filter(pk=work.pk).update(due_at=timezone.now(), claim="", claimed_at=None)
            dispatcher.push(work.pk, timezone.now)

    def judge(self) -> None:
        work = Work.objects.get(name=NAME)
        assert self.member.size() == self.wanted == _decided(self.member.role)
        assert (work.state, work.claim, work.message) == (Work.State.APPLIED, "", "")
        assert work.resize_done == work.resize_wanted == AT_FIRST - self.wanted
        assert (books.job(NAME).attempt, books.job(NAME).state) == (1, Job.State.RUNNING)
        resizing.sizes_agree()


def _decided(role: str) -> int:
    return int(next(each["replicas"] for each in books.job(NAME).roles if each["name"] == role))


@pytest.fixture(scope="module")
def killer(django_db_setup):
    made = Killer()
    yield made
    made.close()


@pytest.fixture
def scene(transactional_db, tmp_path, request):
    world = World(tmp_path)
    world.still("north", 64)
    member: Member = request.param(world)
    policy = yaml.safe_load((EXAMPLES / "policy.yaml").read_text())
    policy["spec"]["resourceSelectors"] = [{"apiVersion": member.kind.api_version, "kind": member.kind.kind}]
    books.apply(yaml.safe_dump(policy), yaml.safe_dump(member.manifest()))
    assert books.cycle() == 1
    dispatcher.push(Work.objects.get(name=NAME).pk, timezone.now)
    Job.objects.update(state=Job.State.RUNNING, started_at=timezone.now())
    Hold.objects.update(released_at=timezone.now())
    member.begins()
    yield Scene(member)
    world.stop()


KINDS: list[Callable[[World], Member]] = [Volcano, Ray, Training]


@pytest.mark.parametrize("scene", KINDS, ids=lambda kind: kind.__name__, indirect=True)
def test_each_kind_has_its_size_whatever_step_the_worker_dies_at(scene, killer):
    for step in range(1, AT_FIRST):
        work = scene.smaller()
        outcome = killer.ask(work.pk, step)
        assert outcome in ("killed", "done"), outcome
        scene.recover(work)
        scene.judge()
        if outcome == "done":
            break
    assert outcome == "done" and step > 4, step
    assert not Event.objects.filter(reason="ResizeRefused").exists()
