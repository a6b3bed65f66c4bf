"""A running TrainingJob is resized by objects beside its copy: one at a time, once for each size, whatever dies in between."""

from datetime import timedelta

import pytest
import yaml
from django.utils import timezone

from fleet.errors import InvalidInput
from fleet.kube.resources import PODS, SCALE_INS, SCALE_OUTS, TRAINING_JOBS
from fleet.member.client import MemberClient
from fleet.models import Event, Hold
from jobs.models import Job, Work
from jobs.services.dispatch import dispatcher
from jobs.services.submission.changes import resizing
from tests.jobs.kinds.builders import EXAMPLES, example
from tests.support import books
from tests.support.world import World

pytestmark = pytest.mark.django_db(transaction=True)
NAME = "fine-tuning"
PATH = TRAINING_JOBS.path("default", NAME)


@pytest.fixture
def world(transactional_db, tmp_path):
    """A member that serves its API and does nothing else, with a copy of two workers and their pods."""
    world = World(tmp_path)
    world.still("north", 64)
    books.apply((EXAMPLES / "policy.yaml").read_text(), yaml.safe_dump(example("trainingjob")[1]))
    books.cycle()
    dispatcher.push(work().pk, timezone.now)
    Job.objects.update(state=Job.State.RUNNING, started_at=timezone.now())
    Hold.objects.update(released_at=timezone.now())
    is_in_phase(world, "Running")
    for index in range(2):
        worker(world, index)
    yield world
    world.stop()


def work() -> Work:
    return Work.objects.get(name=NAME)


def push() -> bool:
    Work.objects.update(due_at=timezone.now(), claim="", claimed_at=None)
    return dispatcher.push(work().pk, timezone.now)


def is_in_phase(world: World, phase: str) -> None:
    world.clients["north"].merge_patch(f"{PATH}/status", {"status": {"phase": phase}})


def worker(world: World, index: int) -> None:
    copy = world.clients["north"].get(PATH)
    labels = {key: value for key, value in copy["metadata"]["labels"].items() if key.startswith("convoy.dev")}
    labels |= {"group-name": TRAINING_JOBS.group, "training-job-role": "worker", "replica-index": str(index)}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{NAME}-worker-{index}", "namespace": "default", "labels": labels},
        "spec": {"containers": [{"name": "worker", "image": "i"}]},
    }
    world.clients["north"].create(PODS.path("default"), body)


def lose(world: World, index: int) -> None:
    world.clients["north"].delete(PODS.path("default", f"{NAME}-worker-{index}"), grace_s=0)


def resize(replicas: int) -> None:
    resizing.resize(books.job(NAME), {"worker": replicas}, by="alice", now=timezone.now())
    books.cycle()


def scalers(world: World) -> list[dict]:
    client = world.clients["north"]
    return [each for kind in (SCALE_INS, SCALE_OUTS) for each in client.list(kind.path("default"))["items"]]


def is_over(world: World, resource, name: str, outcome: str = "ScaleSucceeded") -> None:
    status = {"conditions": [{"type": outcome, "status": "True"}]}
    world.clients["north"].merge_patch(f"{resource.path('default', name)}/status", {"status": status})


def test_it_makes_one_scaler_waits_for_it_and_is_done_when_the_pods_are_there(world):
    resize(4)
    for _ in range(3):
        push()
    [more] = scalers(world)
    assert (more["kind"], more["spec"]["toAdd"]["count"], more["spec"]["selector"]) == ("ScaleOut", 2, {"name": NAME})
    [owner] = more["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("TrainingJob", NAME, True)
    assert "ScaleOut fine-tuning-1-1 is under way" in work().message
    assert (work().resize_wanted, work().resize_done) == (1, 0)
    for index in (2, 3):
        worker(world, index)
    is_over(world, SCALE_OUTS, more["metadata"]["name"])
    push()
    assert (work().resize_done, work().message) == (1, "")
    assert Event.objects.filter(reason="ResizeSent").count() == 1


def test_it_names_the_workers_that_leave(world):
    resize(1)
    push()
    [fewer] = scalers(world)
    assert (fewer["kind"], fewer["spec"]["toDelete"]) == ("ScaleIn", {"podNames": [f"{NAME}-worker-1"]})


def test_it_takes_no_other_worker_for_one_that_left_by_itself(world):
    lose(world, 0)
    resize(1)
    push()
    assert not scalers(world) and work().resize_done == 1


def test_a_scaler_that_failed_is_followed_by_another(world):
    resize(3)
    push()
    is_over(world, SCALE_OUTS, "fine-tuning-1-1", "ScaleFailed")
    push()
    [again] = scalers(world)
    assert again["spec"]["toAdd"]["count"] == 1 and not again.get("status")


def test_fewer_pods_do_not_wait_for_a_scaler_that_adds_some(world):
    resize(4)
    push()
    resize(1)
    push()
    push()
    assert [each["kind"] for each in scalers(world)] == ["ScaleIn"]


def test_a_growth_waits_until_the_scaler_that_takes_pods_is_over(world):
    resize(1)
    push()
    resize(3)
    push()
    assert [each["kind"] for each in scalers(world)] == ["ScaleIn"]
    assert "still bringing it to the size in force" in books.job(NAME).resize["reason"]["message"]
    lose(world, 1)
    is_over(world, SCALE_INS, "fine-tuning-1-1")
    push()
    books.cycle(timezone.now() + timedelta(seconds=1))
    push()
    [more] = scalers(world)
    assert more["spec"]["toAdd"] == {"count": 2}


def test_a_copy_that_starts_over_gets_its_scaler_when_it_runs_again(world):
    is_in_phase(world, "Created")
    resize(3)
    push()
    copy = world.clients["north"].get(PATH)
    assert not scalers(world) and copy["spec"]["etReplicaSpecs"]["worker"]["replicas"] == 3
    worker(world, 2)
    is_in_phase(world, "Running")
    push()
    assert not scalers(world) and work().resize_done == 1


def test_changed_labels_of_a_job_that_was_never_resized_make_no_scaler(world):
    lose(world, 1)
    Work.objects.update(resize_wanted=1)
    push()
    assert not scalers(world) and work().resize_done == 1


class Killed(BaseException):
    """The worker dies."""


def die_at(patched, last: int) -> None:
    """Lets the worker die before its first write (1), or after it (2)."""
    writes = []

    def step() -> None:
        writes.append(1)
        if len(writes) == last:
            raise Killed

    def dying(real):
        def call(*args, **named):
            step()
            answer = real(*args, **named)
            step()
            return answer

        return call

    for name in ("create", "merge_patch", "delete"):
        patched.setattr(MemberClient, name, dying(getattr(MemberClient, name)))


@pytest.mark.parametrize(("replicas", "change"), [(1, {"toDelete"}), (4, {"toAdd"})])
def test_whatever_write_the_worker_dies_before_or_after_there_is_one_scaler_of_the_right_size(
    world, monkeypatch, replicas, change
):
    resize(replicas)
    steps = 0
    while steps < 20:
        with monkeypatch.context() as patched:
            die_at(patched, 1 + steps % 2)
            try:
                push()
            except Killed:
                steps += 1
            else:
                break
    push()
    [one] = scalers(world)
    assert steps >= 4 and change < one["spec"].keys()
    assert one["spec"].get("toAdd", {"count": 2}) == {"count": 2}


@pytest.mark.parametrize(("replicas", "words"), [(0, "0 is below the min"), (9, "9 is above the max")])
def test_outside_its_bounds_it_is_refused_with_the_numbers(world, replicas, words):
    with pytest.raises(InvalidInput, match=words) as refused:
        resize(replicas)
    assert "min 1, max 8, by spec.etReplicaSpecs.worker.minReplicas and maxReplicas), which has 2 now" in str(
        refused.value
    )
