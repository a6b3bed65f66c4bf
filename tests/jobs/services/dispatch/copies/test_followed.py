"""A running RayJob is resized by the RayCluster that its operator made, and by the copy, whatever the worker dies between."""

import pytest
import yaml
from django.utils import timezone

from fleet.kube.resources import POD_GROUPS, RAY_CLUSTERS, RAY_JOBS
from fleet.member.client import MemberClient
from fleet.models import Hold
from jobs.models import Job, Work
from jobs.services.dispatch import dispatcher
from jobs.services.submission.changes import resizing
from tests.jobs.kinds.builders import EXAMPLES, example
from tests.support import books
from tests.support.world import World

pytestmark = pytest.mark.django_db(transaction=True)
PATH, CLUSTER = RAY_JOBS.path("default", "tune"), RAY_CLUSTERS.path("default", "tune-abcde")
WRITES = [POD_GROUPS.path("default", "tune"), PATH, CLUSTER]


@pytest.fixture
def world(transactional_db, tmp_path):
    """A member that serves its API and does nothing else, with the copy of a job and the cluster that was made of it."""
    world = World(tmp_path)
    world.still("north", 64)
    books.apply((EXAMPLES / "policy.yaml").read_text(), yaml.safe_dump(example("rayjob")[1]))
    books.cycle()
    push()
    Job.objects.update(state=Job.State.RUNNING, started_at=timezone.now())
    Hold.objects.update(released_at=timezone.now())
    makes_cluster(world.clients["north"])
    yield world
    world.stop()


def makes_cluster(client: MemberClient, **labels: str | None) -> None:
    """As KubeRay: with the labels of the job."""
    copy = client.get(PATH)
    kept = {key: value for key, value in {**copy["metadata"]["labels"], **labels}.items() if value is not None}
    metadata = {"name": "tune-abcde", "namespace": "default", "labels": kept}
    head = {"apiVersion": RAY_CLUSTERS.api_version, "kind": RAY_CLUSTERS.kind, "metadata": metadata}
    client.create(RAY_CLUSTERS.path("default"), {**head, "spec": copy["spec"]["rayClusterSpec"]})
    client.merge_patch(f"{PATH}/status", {"status": {"rayClusterName": "tune-abcde", "jobDeploymentStatus": "Running"}})


def push() -> bool:
    Work.objects.update(due_at=timezone.now(), claim="", claimed_at=None)
    return dispatcher.push(Work.objects.get().pk, timezone.now)


def resize(replicas: int) -> None:
    resizing.resize(books.job("tune"), {"gpus": replicas}, by="alice", now=timezone.now())


def workers(world: World) -> tuple[int, int]:
    """Those of the copy, and those of the cluster."""
    client = world.clients["north"]
    copy, cluster = client.get(PATH)["spec"]["rayClusterSpec"], client.get(CLUSTER)["spec"]
    return copy["workerGroupSpecs"][0]["replicas"], cluster["workerGroupSpecs"][0]["replicas"]


class Killed(BaseException):
    """The worker dies."""


@pytest.mark.parametrize("writes", range(4))
@pytest.mark.parametrize("is_after", [False, True])
def test_a_worker_that_dies_at_a_write_leaves_what_the_next_one_ends(world, monkeypatch, writes, is_after):
    resize(1)
    real, done = MemberClient.merge_patch, []

    def dying(self, path, body):
        if len(done) == writes and not is_after:
            raise Killed
        answer = real(self, path, body)
        done.append(path)
        if len(done) > writes:
            raise Killed
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(MemberClient, "merge_patch", dying)
        try:
            push()
        except Killed:
            assert done == WRITES[: len(done)] and writes < len(WRITES)
        else:
            assert done == WRITES and writes == len(WRITES)
    push()
    assert workers(world) == (1, 1) and Work.objects.get().resize_done == 1


def test_a_cluster_that_is_not_of_this_job_is_not_touched(world):
    client = world.clients["north"]
    client.delete(CLUSTER)
    makes_cluster(client, **{"convoy.dev/job-uid": None})
    resize(1)
    push()
    assert workers(world) == (1, 2)


def test_where_no_cluster_is_yet_the_copy_alone_says_what_it_begins_with(world):
    world.clients["north"].delete(CLUSTER)
    resize(1)
    push()
    copy = world.clients["north"].get(PATH)["spec"]["rayClusterSpec"]
    assert copy["workerGroupSpecs"][0]["replicas"] == 1 and Work.objects.get().resize_done == 1
