"""A changed manifest while a copy runs: labels and annotations reach it, a changed spec restarts it where that is asked for."""

import json

import pytest
import yaml
from django.utils import timezone

from fleet.errors import InvalidInput
from fleet.kube.resources import PYTORCH_JOBS
from fleet.models import Cluster, Hold
from jobs.models import Attempt, Binding, Job, Work
from jobs.services.dispatch import dispatcher
from jobs.services.scheduling import loop
from jobs.services.submission import submit
from tests.support import books
from tests.support.world import World, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
PATH = PYTORCH_JOBS.path("default", "llama")
RESTART = {"convoy.dev/on-change": "Restart"}


@pytest.fixture
def world(transactional_db, tmp_path):
    """A member that serves its API and does nothing else."""
    world = World(tmp_path)
    world.still("north", 64)
    yield world
    world.stop()


def manifest(image: str = "example.com/train:v1", *, gpus: int = 1, **metadata) -> dict:
    body = yaml.safe_load(pytorch_job("llama", gpus=gpus, duration="10h"))
    body["metadata"] |= metadata
    for role in body["spec"]["pytorchReplicaSpecs"].values():
        role["template"]["spec"]["containers"][0]["image"] = image
    return body


def apply(body: dict) -> None:
    submit.apply([body], by="ada", now=timezone.now())


def push_all() -> None:
    for work in Work.objects.order_by("attempt"):
        dispatcher.push(work.pk, timezone.now)


@pytest.fixture
def running(world):
    """A job whose copy is in the member, labelled ``team: vision``."""
    books.apply(yaml.safe_dump(manifest(labels={"team": "vision", "stage": "old"})))
    books.cycle()
    push_all()
    runs()
    return world


def runs() -> None:
    Job.objects.update(state=Job.State.RUNNING, started_at=timezone.now())
    Hold.objects.update(released_at=timezone.now())


def copy(world: World) -> dict:
    return world.clients["north"].get(PATH)


def image(body: dict) -> str:
    return body["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["image"]


def test_changed_labels_and_annotations_reach_the_running_copy_and_those_of_others_stay(running):
    running.clients["north"].merge_patch(PATH, {"metadata": {"labels": {"theirs": "kept"}}})
    before = copy(running)["metadata"]["labels"]
    apply(manifest(labels={"team": "speech"}, annotations={"owner": "ada"}))
    apply(manifest(labels={"team": "speech", "tier": "gold"}, annotations={"owner": "ada"}))
    push_all()
    metadata = copy(running)["metadata"]
    expected = {key: value for key, value in before.items() if key != "stage"} | {"team": "speech", "tier": "gold"}
    assert metadata["labels"] == expected and metadata["annotations"]["owner"] == "ada"
    work = Work.objects.get()
    assert (work.stale_metadata, work.resize_done) == (None, work.resize_wanted)
    assert Job.objects.get().state == "Running"


def test_a_label_cannot_take_the_place_of_the_fleets_own_marks(running):
    before = copy(running)["metadata"]["labels"]
    apply(manifest(labels={"convoy.dev/attempt": "7"}))
    push_all()
    after = copy(running)["metadata"]["labels"]
    assert {key: value for key, value in before.items() if key.startswith("convoy.dev/")} == {
        key: value for key, value in after.items() if key.startswith("convoy.dev/")
    }


def test_a_changed_spec_is_refused_with_the_annotation_that_restarts_the_pods(running):
    with pytest.raises(InvalidInput, match="convoy.dev/on-change: Restart"):
        apply(manifest("example.com/train:v2"))


def test_with_the_annotation_the_pods_are_restarted_at_their_place_with_the_new_spec(running):
    place = Binding.objects.get().placement
    apply(manifest("example.com/train:v2", annotations=RESTART))
    job = Job.objects.get()
    assert (job.state, job.attempt, job.cluster.name) == ("Placed", 2, "north")
    former, current = Attempt.objects.order_by("number")
    assert (former.outcome, former.cause, current.cluster_name) == ("Superseded", "", "north")
    hold = Hold.objects.get(released_at=None)
    assert (hold.attempt, hold.pods, Binding.objects.get().placement) == (2, 3, place)
    push_all()
    for _ in range(3):
        Work.objects.update(due_at=timezone.now())
        push_all()
    assert image(copy(running)) == "example.com/train:v2"
    assert copy(running)["metadata"]["labels"]["convoy.dev/attempt"] == "2"
    assert list(Work.objects.order_by("attempt").values_list("state", flat=True)) == ["Gone", "Applied"]


def test_a_claim_is_not_moved_to_another_role_by_a_restart(world):
    """The nodes of that role were not chosen for its volume."""

    def mounted_by(role: str) -> dict:
        body = json.loads(json.dumps(manifest(annotations=RESTART)))  # no part of it is shared by the roles
        spec = body["spec"]["pytorchReplicaSpecs"][role]["template"]["spec"]
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        return body

    books.apply(yaml.safe_dump(mounted_by("Master")))
    books.cycle()
    push_all()
    runs()
    with pytest.raises(InvalidInput, match="role master, worker asks for other pods, resources or nodes"):
        apply(mounted_by("Worker"))


def test_its_place_is_not_given_to_another_job_while_it_restarts(running):
    Cluster.objects.get().nodes.update(allocatable={"nvidia.com/gpu": 3, "cpu": 64_000, "memory": 2**38, "pods": 50})
    loop._idle_caches.clear()
    apply(manifest("example.com/train:v2", annotations=RESTART))
    books.apply(pytorch_job("thief"))
    books.cycle()
    assert books.job("thief").state == "Queued" and books.job("llama").state == "Placed"


def test_a_restart_that_needs_another_place_is_refused_and_nothing_is_changed(running):
    with pytest.raises(InvalidInput, match="role master, worker asks for other pods, resources or nodes"):
        apply(manifest("example.com/train:v2", gpus=2, annotations=RESTART))
    job = Job.objects.get()
    assert (job.state, job.attempt, job.gpus) == ("Running", 1, 3) and image(job.manifest) == "example.com/train:v1"


def test_a_restart_is_refused_while_the_cluster_takes_no_pods(running):
    Cluster.objects.update(cordoned=True)
    with pytest.raises(InvalidInput, match="its cluster north takes no new pods"):
        apply(manifest("example.com/train:v2", annotations=RESTART))


def test_a_second_restart_before_the_first_is_sent_is_refused_with_the_state(running):
    apply(manifest("example.com/train:v2", annotations=RESTART))
    with pytest.raises(InvalidInput, match="it is Placed"):
        apply(manifest("example.com/train:v3", annotations=RESTART))


def test_the_annotation_names_its_values(running):
    with pytest.raises(InvalidInput, match="must be Restart or Refuse"):
        apply(manifest(annotations={"convoy.dev/on-change": "yes"}))
