"""Another size reaches the copy in its member once, whatever happens to the copy, the job and the worker meanwhile."""

import pytest
from django.utils import timezone

from fleet.kube.resources import POD_GROUPS, PYTORCH_JOBS
from fleet.member.client import MemberClient
from fleet.member.errors import MemberRefused
from fleet.models import Cluster, Event, Hold
from jobs.models import Job, Work
from jobs.services.dispatch import dispatcher
from jobs.services.dispatch.copies import resizing
from jobs.services.follow import sweep
from jobs.services.follow.status import JobEventHandler
from jobs.services.lifecycle import works
from jobs.services.submission.changes import actions
from tests.jobs.services import resizing as elastic
from tests.jobs.services.resizing import order, resize, size
from tests.support import books
from tests.support.world import World

pytestmark = pytest.mark.django_db(transaction=True)
PATH = PYTORCH_JOBS.path("default", "llama")


@pytest.fixture
def world(transactional_db, tmp_path):
    """A member that serves its API and does nothing else."""
    world = World(tmp_path)
    world.still("north", 64)
    yield world
    world.stop()


@pytest.fixture
def running(world):
    """A job of four workers whose copy is in the member."""
    books.apply(elastic.elastic("llama", 4))
    books.cycle()
    push()
    Job.objects.update(state=Job.State.RUNNING, started_at=timezone.now())
    Hold.objects.update(released_at=timezone.now())
    return world


def push() -> bool:
    return dispatcher.push(order("llama").pk, timezone.now)


def copy(world: World) -> dict:
    return world.clients["north"].get(PATH)


def workers(world: World) -> int:
    return copy(world)["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"]


def reported(world: World) -> None:
    cluster = books.job("llama").cluster_id
    JobEventHandler().on_update(cluster, PYTORCH_JOBS, [copy(world)], timezone.now())


def test_it_brings_the_copy_to_the_size_in_force_and_records_it_once(running):
    resize("llama", 2)
    assert workers(running) == 4
    assert push()
    work = order("llama")
    assert (workers(running), work.state, work.claim) == (2, Work.State.APPLIED, "")
    assert (work.resize_wanted, work.resize_done) == (1, 1)
    assert copy(running)["metadata"]["annotations"]["convoy.dev/size"] == "worker=2"
    assert not push()
    assert Event.objects.get(reason="ResizeSent").message == "north was given the size in force: 2 worker"


def test_it_grows_the_copy(running):
    resize("llama", 6)
    books.cycle()
    assert push() and workers(running) == 6


def test_the_sweep_finds_an_order_whose_hint_was_lost(running, monkeypatch):
    sent = []
    monkeypatch.setattr("fleet.changes.events.enqueue", lambda task, *args, **_: sent.append((task, *args)))
    resize("llama", 2)
    sent.clear()
    assert sweep.Sweeper().run(timezone.now())
    assert ("jobs.push", order("llama").pk) in sent
    push()
    sent.clear()
    sweep.run(timezone.now())
    assert ("jobs.push", order("llama").pk) not in sent


def test_two_sizes_before_the_member_is_told_are_one_patch_of_the_last(running):
    resize("llama", 3)
    resize("llama", 2)
    generation = copy(running)["metadata"]["generation"]
    assert push() and not push()
    assert (workers(running), order("llama").resize_done) == (2, 2)
    assert copy(running)["metadata"]["generation"] == generation + 1


def test_a_size_decided_while_the_one_before_is_sent_is_sent_too(running):
    """The order is given again between the patch of the first and its record."""
    resize("llama", 3)
    ticks = []

    def clock():
        ticks.append(1)
        if workers(running) == 3 and size("llama") == 3:
            resize("llama", 2)
        return timezone.now()

    dispatcher.push(order("llama").pk, clock)
    assert order("llama").resize_done < order("llama").resize_wanted
    push()
    assert (workers(running), order("llama").resize_done) == (2, 2)


def test_a_worker_that_lost_its_claim_changes_nothing(running):
    resize("llama", 3)
    late = works.claim(order("llama").pk, timezone.now())
    Work.objects.update(claim="")
    resize("llama", 2)
    push()
    with pytest.raises(works.ClaimLost):
        job = books.job("llama")
        resizing.carry_out(dispatcher._client(late, timezone.now), late, _with_size(job, 3), timezone.now)
    assert (workers(running), size("llama")) == (2, 2)


def _with_size(job: Job, workers: int) -> Job:
    """The job as a worker read it that was paused since."""
    next(role for role in job.roles if role["name"] == "worker")["replicas"] = workers
    return job


def test_a_copy_of_another_attempt_and_one_that_is_gone_are_left_alone(running):
    resize("llama", 2)
    Job.objects.update(attempt=2)
    push_first = Work.objects.get()
    assert dispatcher.push(push_first.pk, timezone.now)
    assert workers(running) == 4
    Job.objects.update(attempt=1)
    resize("llama", 1)
    running.clients["north"].delete(PATH)
    assert push() and not push()


def test_a_copy_that_belongs_to_somebody_else_is_not_touched(running):
    resize("llama", 2)
    running.clients["north"].merge_patch(PATH, {"metadata": {"labels": {"convoy.dev/job-uid": None}}})
    marks = {key for key in copy(running)["metadata"]["labels"] if "uid" in key}
    for key in marks:
        running.clients["north"].merge_patch(PATH, {"metadata": {"labels": {key: None}}})
    push()
    assert workers(running) == 4


def test_suspending_a_job_ends_its_order(running):
    resize("llama", 2)
    actions.suspend(books.job("llama"), by="test", now=timezone.now())
    push()
    assert (order("llama").state, copy(running)["spec"]["runPolicy"]["suspend"]) == (Work.State.SUSPENDED, True)
    assert not push()
    actions.resume(books.job("llama"), by="test", now=timezone.now())
    assert size("llama") == 2


def test_deleting_a_job_ends_its_order(running):
    resize("llama", 2)
    actions.delete(books.job("llama"), by="test", now=timezone.now())
    for _ in range(3):
        for work in Work.objects.all():
            Work.objects.update(due_at=timezone.now())
            dispatcher.push(work.pk, timezone.now)
    assert not Job.objects.exists() and not Work.objects.exists()


def test_a_member_that_is_away_gets_the_size_when_it_answers_again(running):
    resize("llama", 2)
    running.members["north"].stop()
    assert push()
    assert order("llama").resize_done == 0 and books.job("llama").state == Job.State.RUNNING


def test_a_copy_that_was_resized_and_then_changed_in_its_member_is_brought_back(running):
    resize("llama", 2)
    push()
    reported(running)
    assert order("llama").resize_wanted == 1
    patch = {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 7}}}}
    running.clients["north"].merge_patch(PATH, patch)
    reported(running)
    reported(running)
    assert order("llama").resize_wanted == 2
    push()
    assert workers(running) == 2


def test_a_late_report_of_the_size_before_changes_nothing(running):
    resize("llama", 3)
    push()
    before = copy(running)
    resize("llama", 2)
    push()
    JobEventHandler().on_update(books.job("llama").cluster_id, PYTORCH_JOBS, [before], timezone.now())
    push()
    assert (workers(running), size("llama")) == (2, 2)
    assert Event.objects.filter(reason="ResizeSent").count() == 2


def test_the_pod_group_gets_the_gang_of_the_new_size(world):
    cluster = Cluster.objects.get()
    cluster.apis = {**cluster.apis, POD_GROUPS.api_version: {POD_GROUPS.kind: "podgroups"}}
    cluster.save()
    books.apply(elastic.elastic("llama", 4))
    books.cycle()
    push()
    group = POD_GROUPS.path("default", "llama")
    assert world.clients["north"].get(group)["spec"]["minMember"] == 4
    Job.objects.update(state=Job.State.RUNNING)
    resize("llama", 2)
    push()
    assert world.clients["north"].get(group)["spec"]["minMember"] == 2


def test_a_member_that_refuses_the_size_is_asked_again_and_says_why(running, monkeypatch):
    resize("llama", 2)

    def refuse(*_: object) -> None:
        raise MemberRefused("replicas are fixed here", status=422, reason="Invalid")

    with monkeypatch.context() as patched:
        patched.setattr(MemberClient, "merge_patch", refuse)
        push()
        Work.objects.update(due_at=timezone.now())
        push()
    event = Event.objects.get(reason="ResizeRefused")
    assert "north refuses the change" in event.message and "replicas are fixed here" in event.message
    assert (event.count, order("llama").resize_done, size("llama")) == (1, 0, 2)
    Work.objects.update(due_at=timezone.now())
    assert push() and workers(running) == 2
