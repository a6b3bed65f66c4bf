"""A worker is killed -9 at every step while a member makes room for a gang: each pod is held once, or nothing is."""

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.kube.resources import RESERVATIONS
from fleet.models import Cluster
from fleet.services.clusters import clusters
from jobs.models import Job, Work
from jobs.services.dispatch import dispatcher
from jobs.services.scheduling import loop
from jobs.services.submission.changes import actions
from tests.faults.builders import Killer, every_step, recover
from tests.support.world import POLICY, World, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
SERVED = {"reservations.scheduling.koordinator.sh": "v1alpha1"}
PODS = 2


@pytest.fixture(scope="module")
def killer(django_db_setup):
    made = Killer()
    yield made
    made.close()


@pytest.fixture
def member(transactional_db, tmp_path):
    """It holds what it is asked to when the test says so."""
    world = World(tmp_path)
    world.still("north", 200, serves=SERVED)
    clusters.set_labels(Cluster.objects.get(), {"convoy.dev/fit": "Reservation"}, by="test", now=timezone.now())
    yield world
    for each in world.members.values():
        each.stop()


def placed(world: World, name: str) -> Work:
    world.apply(POLICY, pytorch_job(name, workers=PODS - 1))
    assert loop.run(timezone.now) == 1
    return Work.objects.get(name=name)


def held(world: World) -> dict[str, int]:
    """How many reservations there are, by the uid of the job."""
    found: dict[str, int] = {}
    for each in world.clients["north"].list(RESERVATIONS.path())["items"]:
        uid = each["metadata"]["labels"]["convoy.dev/job-uid"]
        found[uid] = found.get(uid, 0) + 1
    return found


def grant(world: World) -> None:
    """As the member's scheduler does."""
    client = world.clients["north"]
    for each in client.list(RESERVATIONS.path())["items"]:
        if not each.get("status"):
            path = RESERVATIONS.path(name=each["metadata"]["name"], subresource="status")
            client.merge_patch(path, {"status": {"phase": "Available", "nodeName": "node"}})


def reserved(world: World, name: str) -> Work:
    """One whose room is made and granted, and whose copy is to be sent next."""
    work = placed(world, name)
    dispatcher.push(work.pk, timezone.now)
    grant(world)
    due(work)
    return work


def due(work: Work) -> None:
    old = timezone.now() - timedelta(hours=1)
    Work.objects.filter(pk=work.pk).update(due_at=old)
    Work.objects.filter(pk=work.pk).exclude(claim="").update(claimed_at=old)


def finish(world: World, work: Work) -> None:
    """What the next workers do, while the member grants what is asked."""
    for _ in range(3):
        due(work)
        dispatcher.push(work.pk, timezone.now)
        grant(world)


def test_each_pod_is_held_once_whatever_step_the_reserving_worker_dies_at(member, killer):
    step, outcome = 0, "killed"
    while outcome == "killed":
        step += 1
        work = placed(member, f"job-{step}")
        outcome = killer.ask(work.pk, step)
        finish(member, work)
    assert outcome == "done" and step > 5
    assert set(Job.objects.values_list("state", flat=True)) == {"Dispatched"}
    assert held(member) == {str(uid): PODS for uid in Job.objects.values_list("uid", flat=True)}
    assert sorted(member.copies()["north"]) == sorted(Job.objects.values_list("name", flat=True))


def test_one_copy_is_sent_whatever_step_the_worker_dies_at_once_its_room_is_held(member, killer):
    steps = every_step(killer, (reserved(member, f"job-{i}") for i in range(1000)))
    assert steps > 5
    jobs = Job.objects.exclude(name=f"job-{steps - 1}")
    assert set(jobs.values_list("state", flat=True)) == {"Dispatched"}
    assert set(held(member).values()) == {PODS}


def test_nothing_stays_held_for_a_job_deleted_after_its_worker_died_at_any_step(member, killer):
    step, outcome = 0, "killed"
    while outcome == "killed":
        step += 1
        work = placed(member, "job")
        outcome = killer.ask(work.pk, step)
        actions.delete(Job.objects.get(), by="test", now=timezone.now())
        recover(work)
        assert (held(member), member.copies()) == ({}, {"north": []}), step
        assert not Job.objects.exists()
    assert outcome == "done" and step > 5


def test_nothing_stays_held_whatever_step_the_withdrawing_worker_dies_at(member, killer):
    def works():
        for i in range(1000):
            work = reserved(member, f"job-{i}")
            dispatcher.push(work.pk, timezone.now)
            actions.delete(Job.objects.get(name=work.name), by="test", now=timezone.now())
            yield work

    steps = every_step(killer, works())
    assert steps > 4 and held(member) == {}
