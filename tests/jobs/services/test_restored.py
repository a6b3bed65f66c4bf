"""A database that is older than what it sent: copies go on where they are, none is doubled, and none is removed unasked."""

from contextlib import ExitStack
from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.api.http.recent_checks import RECENT
from fleet.kube.resources import PYTORCH_JOBS
from fleet.models import Cluster, Event, Hold, Identity, Pod
from fleet.services.clusters import freshness
from jobs.core.failover.rules import Outcome
from jobs.core.reasons import Code, Reason
from jobs.models import Attempt, Job, Work
from jobs.services.dispatch import dispatcher
from jobs.services.failover import failover
from jobs.services.follow.status import JobEventHandler
from jobs.services.submission.changes import actions
from tests.support import backup, books, quotas
from tests.support.passive import PassiveMember, passive_member
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
PATH = PYTORCH_JOBS.path("default", "llama")


@pytest.fixture
def members(tmp_path):
    Identity.here()
    with ExitStack() as stack:
        yield [stack.enter_context(passive_member(tmp_path, name)) for name in ("north", "south")]


def status_of(condition: str) -> dict:
    return {"conditions": [{"type": condition, "status": "True"}]} if condition else {}


def report(member: PassiveMember, condition: str = "") -> None:
    """A whole list of the member, as its watch begins with."""
    handler, expected = JobEventHandler(), set(JobEventHandler().expected(member.cluster.pk, PYTORCH_JOBS))
    found = [{**each, "status": status_of(condition)} for each in member.items(PYTORCH_JOBS)]
    now = timezone.now()
    handler.on_update(member.cluster.pk, PYTORCH_JOBS, found, now)
    keys = {(work.job_uid, work.attempt) for work in Work.objects.filter(cluster=member.cluster) if found}
    handler.on_resync(member.cluster.pk, PYTORCH_JOBS, expected - keys, now + timedelta(minutes=1))


def work(members: list[PassiveMember]) -> None:
    for _ in range(2):
        for member in members:
            member.work(PYTORCH_JOBS)


def copies(members: list[PassiveMember]) -> dict[str, list[str]]:
    """The attempt of every copy, by member."""
    found = {member.cluster.name: member.items(PYTORCH_JOBS) for member in members}
    return {
        name: [each["metadata"]["labels"]["convoy.dev/attempt"] for each in items]
        for name, items in found.items()
        if items
    }


def settle(members: list[PassiveMember], condition: str = "") -> None:
    """The whole product runs for a while."""
    for _ in range(3):
        for member in members:
            report(member, condition)
        books.cycle()
        work(members)


def placed(members: list[PassiveMember], name: str = "llama") -> PassiveMember:
    """The job has its copy; in which member."""
    books.cycle()
    work(members)
    return next(member for member in members if member.cluster.pk == books.job(name).cluster_id)


def move(members: list[PassiveMember]) -> PassiveMember:
    """The next attempt, in the other member."""
    job = books.job("llama")
    Cluster.objects.filter(pk=job.cluster_id).update(cordoned=True)
    assert failover.leave(job, Outcome.FAILED, Reason(Code.COPY_VANISHED, "test"), timezone.now())
    there = placed(members)
    Cluster.objects.update(cordoned=False)
    return there


def goes_on(members: list[PassiveMember], attempt: int, condition: str = "Running") -> Job:
    """Exactly one copy is left and it is the job's attempt."""
    before = copies(members)
    settle(members, condition)
    job = books.job("llama")
    assert list(copies(members).values()) == [[str(attempt)]], f"{before} became {copies(members)}"
    assert (job.attempt, job.state) == (attempt, condition), job.reason
    assert Work.objects.exclude(state=Work.State.GONE).get().attempt == attempt
    return job


def test_a_copy_that_runs_goes_on_as_the_jobs_attempt(members):
    books.apply(pytorch_job("llama"))
    saved = backup.take()
    here = placed(members)
    uid = here.client.get(PATH)["metadata"]["uid"]
    backup.restore(saved)
    job = goes_on(members, 1)
    assert job.cluster_id == here.cluster.pk and here.client.get(PATH)["metadata"]["uid"] == uid
    row = Work.objects.get()
    assert row.marked and row.object_uid == uid and job.binding.attempt == 1
    assert Attempt.objects.get().number == 1 and Event.objects.filter(reason="CopyAdopted").count() == 1


def test_a_copy_that_has_finished_has_finished_the_job(members):
    books.apply(pytorch_job("llama"))
    saved = backup.take()
    here = placed(members)
    report(here, "Succeeded")
    backup.restore(saved)
    assert goes_on(members, 1, "Succeeded").charge is None
    assert not Hold.objects.filter(released_at=None).exists()


def test_it_is_the_same_when_the_backup_is_restored_twice(members):
    books.apply(pytorch_job("llama"))
    saved = backup.take()
    placed(members)
    for _ in range(2):
        backup.restore(saved)
        goes_on(members, 1)


@pytest.mark.parametrize("first", [0, 1])
def test_a_job_that_moved_meanwhile_stays_where_it_moved(members, first):
    books.apply(pytorch_job("llama"))
    placed(members)
    saved = backup.take()
    there = move(members)
    assert list(copies(members).values()) == [["2"]]
    backup.restore(saved)
    report(members[first], "Running")
    report(members[1 - first], "Running")
    job = goes_on(members, 2)
    assert job.cluster_id == there.cluster.pk
    assert list(Attempt.objects.values_list("number", flat=True)) == [1, 2]


@pytest.mark.parametrize("first", [0, 1])
def test_of_two_newer_copies_the_newest_goes_on(members, first):
    books.apply(pytorch_job("llama"))
    saved = backup.take()
    placed(members)
    Work.objects.update(state="Kept")
    move(members)
    assert sorted(copies(members).values()) == [["1"], ["2"]]
    backup.restore(saved)
    report(members[first], "Running")
    report(members[1 - first], "Running")
    goes_on(members, 2)


def test_a_job_that_was_deleted_meanwhile_is_back_with_one_copy(members):
    books.apply(pytorch_job("llama"))
    placed(members)
    saved = backup.take()
    actions.delete(books.job("llama"), by="test", now=timezone.now())
    work(members)
    assert copies(members) == {}
    backup.restore(saved)
    for member in members:
        report(member)
    books.cycle()
    work(members)
    assert list(copies(members).values()) == [["2"]]


def test_a_copy_that_is_being_removed_is_not_adopted_and_the_next_attempt_is_numbered_above_it(members):
    books.apply(pytorch_job("llama"))
    saved = backup.take()
    here = placed(members)
    here.client.merge_patch(PATH, {"metadata": {"finalizers": ["example.com/slow"]}})
    found = here.client.get(PATH)["metadata"]
    here.client.delete(PATH, propagation="Foreground", uid=found["uid"], version=found["resourceVersion"])
    backup.restore(saved)
    assert here.client.get(PATH)["metadata"]["deletionTimestamp"]
    report(here, "Running")
    assert (books.job("llama").state, books.job("llama").attempt) == ("Queued", 1)
    books.cycle()
    work(members)
    assert list(copies(members).values()) == [["2"]]


def test_a_suspended_copy_is_removed_and_the_next_attempt_is_numbered_above_it(members):
    books.apply(pytorch_job("llama"))
    saved = backup.take()
    here = placed(members)
    here.client.merge_patch(PATH, {"spec": {"runPolicy": {"suspend": True}}})
    backup.restore(saved)
    report(here)
    assert books.job("llama").attempt == 1
    books.cycle()
    work(members)
    assert list(copies(members).values()) == [["2"]]


def test_a_copy_is_not_adopted_by_a_job_that_is_suspended(members):
    books.apply(pytorch_job("llama"))
    actions.suspend(books.job("llama"), by="test", now=timezone.now())
    saved = backup.take()
    actions.resume(books.job("llama"), by="test", now=timezone.now())
    here = placed(members)
    backup.restore(saved)
    report(here, "Running")
    work(members)
    assert copies(members) == {} and books.job("llama").state == "Suspended"
    actions.resume(books.job("llama"), by="test", now=timezone.now())
    placed(members)
    assert list(copies(members).values()) == [["2"]]


def test_a_copy_of_another_size_is_not_adopted(members):
    books.apply(pytorch_job("llama"))
    saved = backup.take()
    here = placed(members)
    here.client.merge_patch(PATH, {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 9}}}})
    backup.restore(saved)
    report(here, "Running")
    books.cycle()
    work(members)
    assert list(copies(members).values()) == [["2"]]


def test_a_job_newer_than_the_backup_runs_on_unknown_and_is_reported(members, as_admin):
    saved = backup.take()
    books.apply(pytorch_job("llama"))
    here = placed(members)
    uid = books.job("llama").uid
    backup.restore(saved)
    settle(members, "Running")
    assert copies(members) == {here.cluster.name: ["1"]} and not Job.objects.exists() and not Work.objects.exists()
    (line,) = Event.objects.filter(reason="ObjectNotBelieved")
    assert "does not know" in line.message and "delete it in the cluster" in line.message

    def check() -> dict:
        RECENT.forget()
        return {row["name"]: row for row in as_admin.get("/api/v1/system/").json()["checks"]}["copies"]

    assert check()["ok"]
    Pod.objects.create(
        cluster=here.cluster, job_uid=uid, attempt=1, namespace="default", name="p", uid="u", phase="Running",
        created_at=timezone.now(),
    )  # fmt: skip
    assert not check()["ok"] and "1 job runs" in check()["detail"]


def test_what_is_adopted_is_charged_and_held_until_its_pods_are_on_nodes(members):
    quotas.apply_tree(quotas.leaf("a", "default", **quotas.gpus(4, 8)))
    books.apply(pytorch_job("llama", workers=1, gpus=2))
    saved = backup.take()
    placed(members)
    backup.restore(saved)
    for member in members:
        report(member)
    job = books.job("llama")
    assert job.charge == {**job.total, "kube-queue/max-jobs": 1}
    hold = Hold.objects.get(released_at=None)
    assert (hold.amounts, hold.pods, hold.attempt) == (job.total, 2, 1)
    assert job.leaf == "root/a" and quotas.ledger_is_exact()


def test_an_adopted_attempt_that_vanishes_is_followed_by_the_next_number(members):
    books.apply(pytorch_job("llama"))
    saved = backup.take()
    here = placed(members)
    backup.restore(saved)
    goes_on(members, 1)
    found = here.client.get(PATH)
    here.client.delete(PATH, propagation="Background", uid=found["metadata"]["uid"])
    JobEventHandler().on_delete(here.cluster.pk, PYTORCH_JOBS, [found], timezone.now())
    books.cycle()
    work(members)
    assert list(copies(members).values()) == [["2"]]


MINUTE = timedelta(minutes=1)


def watched(name: str, since: timedelta, until: timedelta) -> None:
    now = timezone.now()
    Cluster.objects.filter(name=name).update(watched_since=now - since, watched_until=now - until, stale_since=None)


def test_nothing_is_placed_until_every_ready_member_was_seen_again(members):
    books.apply(pytorch_job("llama"))
    watched("north", 90 * MINUTE, 60 * MINUTE)
    watched("south", timedelta(seconds=5), timedelta())
    assert books.cycle() == 0
    watched("north", timedelta(seconds=1), timedelta())
    freshness.review(timezone.now())
    assert books.cycle() == 1


def test_a_member_that_cannot_be_watched_delays_the_others_a_minute_only(members):
    books.apply(pytorch_job("llama"))
    watched("north", 90 * MINUTE, 60 * MINUTE)
    watched("south", 2 * MINUTE, timedelta())
    assert books.cycle() == 1 and books.job("llama").cluster.name == "south"


def test_a_member_that_went_out_of_sight_alone_delays_nobody(members):
    books.apply(pytorch_job("llama"))
    watched("north", 90 * MINUTE, timedelta(seconds=30))
    watched("south", timedelta(seconds=50), timedelta())
    assert books.cycle() == 1


def test_what_was_to_be_sent_when_the_backup_was_made_is_not_sent_before_the_members_are_seen(members):
    books.apply(pytorch_job("llama"))
    books.cycle()
    saved = backup.take()
    work(members)
    there = move(members)
    backup.restore(saved)
    old = Work.objects.get()
    Work.objects.update(created_at=timezone.now() - 61 * MINUTE)
    watched("north", 90 * MINUTE, 60 * MINUTE)
    watched("south", 90 * MINUTE, 60 * MINUTE)
    dispatcher.push(old.pk, timezone.now)
    assert copies(members) == {there.cluster.name: ["2"]}
    watched("north", timedelta(seconds=5), timedelta())
    watched("south", timedelta(seconds=5), timedelta())
    goes_on(members, 2)
