"""When two copies of a job may be running, its timeline and every view of it say so, and say when that is over."""

import pytest
from django.utils import timezone

from fleet.kube.resources import PYTORCH_JOBS
from fleet.models import Cluster, Event
from jobs.core.failover.rules import Outcome
from jobs.core.reasons import Code, Reason
from jobs.services.failover import division, failover
from jobs.services.lifecycle.copies import other_copies
from jobs.services.lifecycle.copies.other_copies import CopyCode
from tests.jobs.services import lost_cluster
from tests.support import books
from tests.support.division import LOST, SPREAD, sweep_job
from tests.support.passive import passive_member
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
NAME = "j" * 53


@pytest.fixture
def north(tmp_path):
    with passive_member(tmp_path) as made:
        yield made


@pytest.fixture
def south(tmp_path):
    with passive_member(tmp_path, "south") as made:
        yield made


def set_state(member, state: Cluster.State) -> None:
    Cluster.objects.filter(pk=member.cluster.pk).update(state=state)


def run_on(member) -> None:
    books.apply(pytorch_job(NAME))
    lost_cluster.cycle()
    member.work(PYTORCH_JOBS)
    books.report(NAME, "Running")


def lose(member) -> None:
    set_state(member, Cluster.State.UNKNOWN)
    failover.leave(books.job(NAME), Outcome.LOST, Reason(Code.CLUSTER_LOST, "gone"), timezone.now())
    lost_cluster.cycle()


def started_on(north, south) -> None:
    set_state(south, Cluster.State.UNKNOWN)
    run_on(north)
    set_state(south, Cluster.State.READY)


def codes() -> list[CopyCode]:
    return [copy.code for copy in other_copies.beside(books.job(NAME))]


def test_it_says_so_from_the_moment_the_second_copy_is_sent_until_the_first_is_gone(north, south, as_admin):
    started_on(north, south)
    lose(north)
    assert codes() == []
    south.work(PYTORCH_JOBS)
    assert codes() == [CopyCode.UNREACHABLE]
    event = Event.objects.get(reason="TwoCopiesPossible")
    expected = "The copy of attempt 1 on north may run beside attempt 2: north does not answer"
    assert event.type == "Warning" and event.message.startswith(expected)
    (copy,) = as_admin.get(f"/api/v1/jobs/{books.job(NAME).uid}/").json()["other_copies"]
    assert (copy["code"], copy["attempt"], copy["cluster"], copy["current"]) == ("CopyUnreachable", 1, "north", 2)
    assert copy["message"].startswith(expected)
    set_state(north, Cluster.State.READY)
    assert codes() == [CopyCode.STOPPING]
    north.work(PYTORCH_JOBS)
    assert codes() == []
    assert "on north is gone" in Event.objects.get(reason="TwoCopiesOver").message


def test_a_move_between_clusters_that_answer_never_has_two_copies(north, south):
    started_on(north, south)
    failover.leave(books.job(NAME), Outcome.FAILED, Reason(Code.FAILED, "exit 1"), timezone.now())
    lost_cluster.cycle()
    assert codes() == []
    for member in (north, south, north, south):
        member.work(PYTORCH_JOBS)
    assert books.job(NAME).attempt == 2 and codes() == []
    assert not Event.objects.filter(reason__startswith="TwoCopies").exists()


def test_an_ended_job_has_no_second_copy(north, south):
    started_on(north, south)
    lose(north)
    south.work(PYTORCH_JOBS)
    books.report(NAME, "Succeeded")
    assert codes() == []


def test_a_share_of_a_divided_job_runs_twice_only_beside_its_own_replacement():
    for name, gpus in (("north", 5), ("south", 3), ("east", 2)):
        books.a_cluster(name, gpus=gpus)
    books.apply(SPREAD, sweep_job(NAME, pods=6))
    lost_cluster.cycle()
    books.sent()
    division.leave(books.job(NAME), 2, Outcome.LOST, LOST, timezone.now())
    assert codes() == []
    Cluster.objects.filter(name="south").update(state=Cluster.State.UNKNOWN)
    lost_cluster.cycle()
    assert codes() == []
    books.sent()
    (copy,) = other_copies.beside(books.job(NAME))
    assert (copy.attempt, copy.cluster, copy.current) == (2, "south", 3)


def test_each_of_two_lost_clusters_is_named(north, south, tmp_path):
    started_on(north, south)
    lose(north)
    south.work(PYTORCH_JOBS)
    with passive_member(tmp_path, "west") as west:
        lose(south)
        west.work(PYTORCH_JOBS)
        assert codes() == [CopyCode.UNREACHABLE, CopyCode.UNREACHABLE]
        assert Event.objects.filter(reason="TwoCopiesPossible").latest("pk").message.count("does not answer") == 2
