"""A worker that comes back late finds its claim lost and its attempt superseded: it neither removes nor makes a copy."""

from datetime import timedelta

import pytest
import yaml
from django.utils import timezone

from fleet.kube.resources import POD_GROUPS, PYTORCH_JOBS
from fleet.member.errors import MemberChanged
from fleet.models import Event, Identity
from jobs.core.failover.rules import Outcome, PurgeMode
from jobs.core.life.works import WorkEvent
from jobs.core.reasons import Code, Reason
from jobs.kinds import registry
from jobs.models import Attempt, Job, Work
from jobs.services.dispatch import dispatcher
from jobs.services.dispatch.members import member_objects
from jobs.services.failover import failover
from jobs.services.lifecycle import works
from jobs.services.submission.changes import actions
from tests.support import books
from tests.support.passive import CLAIM as LATE
from tests.support.passive import passive_member
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
PATH = PYTORCH_JOBS.path("default", "llama")


@pytest.fixture
def member(tmp_path):
    with passive_member(tmp_path) as made:
        yield made


@pytest.fixture
def north(member):
    return member.client


def placed() -> Work:
    books.apply(pytorch_job("llama"))
    books.cycle()
    return Work.objects.get()


def claimed(work: Work) -> Work:
    """As a worker holds it that is paused before it speaks to the member."""
    Work.objects.filter(pk=work.pk).update(due_at=timezone.now())
    mine = works.claim(work.pk, timezone.now())
    assert mine is not None
    return mine


def sending() -> Work:
    """As a worker holds it that is paused on its way to the member."""
    mine = claimed(placed())
    assert works.advance(mine, WorkEvent.BEGUN)
    return mine


def move(member) -> None:
    """The job leaves its attempt, and the next one is sent to the same cluster."""
    failover.leave(
        books.job("llama"), Outcome.LOST, Reason(Code.CLUSTER_LOST, "gone"), timezone.now(), purge=PurgeMode.DIRECTLY
    )
    member.work(PYTORCH_JOBS)
    books.cycle()
    member.work(PYTORCH_JOBS)


def resume_late(work: Work) -> None:
    """The paused worker goes on where it stopped, by its own clock."""
    with pytest.raises(works.ClaimLost):
        dispatcher._act_on_state(work, Job.objects.get(), lambda: timezone.now() + LATE)


def attempt_of(found) -> str:
    return found["metadata"]["labels"]["convoy.dev/attempt"]


def test_a_late_withdrawal_leaves_the_newer_attempt_alone(member, north):
    work = placed()
    member.work(PYTORCH_JOBS)
    Work.objects.update(state="Withdrawing", due_at=timezone.now())
    late = claimed(work)
    Work.objects.update(state="Applied", claim="", claimed_at=None)
    move(member)
    uid = north.get(PATH)["metadata"]["uid"]
    assert attempt_of(north.get(PATH)) == "2"
    dispatcher._act_on_state(late, Job.objects.get(), lambda: timezone.now() + LATE)
    assert north.get(PATH)["metadata"]["uid"] == uid
    assert Work.objects.get(attempt=2).state == "Applied"


def test_a_late_sender_leaves_the_newer_attempt_alone(member, north):
    late = sending()
    Work.objects.update(claim="", claimed_at=None)
    member.work(PYTORCH_JOBS)
    move(member)
    before = north.get(PATH), north.get(POD_GROUPS.path("default", "llama"))
    resume_late(late)
    assert (north.get(PATH), north.get(POD_GROUPS.path("default", "llama"))) == before


def test_a_late_sender_makes_nothing_for_a_suspended_job(member, north):
    late = sending()
    actions.suspend(books.job("llama"), by="test", now=timezone.now())
    member.work(PYTORCH_JOBS, timezone.now() + LATE)
    resume_late(late)
    assert member.items(PYTORCH_JOBS) == []


def test_a_copy_made_late_for_a_suspended_job_is_removed(member, north):
    late = sending()
    actions.suspend(books.job("llama"), by="test", now=timezone.now())
    member.work(PYTORCH_JOBS, timezone.now() + LATE)
    body = member_objects.manifest(
        registry.kind_of(late.api_version, late.kind), books.job("llama").manifest, labels(late.job_uid, 1)
    )
    north.create(PYTORCH_JOBS.path("default"), body)
    member.report(PYTORCH_JOBS)
    member.work(PYTORCH_JOBS)
    assert member.items(PYTORCH_JOBS) == []


def labels(uid, attempt):
    return member_objects.labels(Identity.here(), str(uid), attempt)


def test_a_copy_that_is_switched_on_again_under_a_suspended_job_is_suspended(member, north):
    placed()
    member.work(PYTORCH_JOBS)
    actions.suspend(books.job("llama"), by="test", now=timezone.now())
    member.work(PYTORCH_JOBS)
    assert Work.objects.get().state == "Suspended"
    north.merge_patch(PATH, {"spec": {"runPolicy": {"suspend": False}}})
    member.report(PYTORCH_JOBS)
    member.work(PYTORCH_JOBS)
    assert north.get(PATH)["spec"]["runPolicy"]["suspend"] is True
    member.report(PYTORCH_JOBS)
    assert Work.objects.get().state == "Suspended"


def test_a_copy_that_runs_under_a_finished_job_is_removed(member, north):
    placed()
    member.work(PYTORCH_JOBS)
    Job.objects.update(state="Failed", finished_at=timezone.now())
    member.report(PYTORCH_JOBS)
    member.work(PYTORCH_JOBS)
    assert member.items(PYTORCH_JOBS) == []


def test_a_copy_that_ended_with_its_job_stays(member, north):
    placed()
    member.work(PYTORCH_JOBS)
    done = {"conditions": [{"type": "Succeeded", "status": "True"}]}
    north.merge_patch(f"{PATH}/status", {"status": done})
    member.report(PYTORCH_JOBS)
    assert books.job("llama").state == "Succeeded"
    member.report(PYTORCH_JOBS)
    member.work(PYTORCH_JOBS)
    assert north.get(PATH)["status"] == done


def test_it_compares_the_order_of_attempts(member, north):
    work = placed()
    uid, kind = str(work.job_uid), registry.kind_of(work.api_version, work.kind)
    newer = member_objects.manifest(kind, books.job("llama").manifest, labels(uid, 3))
    older = member_objects.manifest(kind, books.job("llama").manifest, labels(uid, 2))
    member_objects.create(north, PYTORCH_JOBS, newer, uid, 3)
    with pytest.raises(member_objects.Superseded):
        member_objects.create(north, PYTORCH_JOBS, older, uid, 2)
    assert member_objects.remove(north, PYTORCH_JOBS, "default", "llama", uid, 2)
    assert not member_objects.suspend(north, PYTORCH_JOBS, kind, "default", "llama", uid, 2)
    assert not north.get(PATH)["metadata"].get("deletionTimestamp")
    assert not north.get(PATH)["spec"].get("runPolicy", {}).get("suspend")


def test_an_object_that_changes_while_it_is_removed_is_not_taken_for_one_that_goes(member, north):
    work = placed()
    member.work(PYTORCH_JOBS)
    uid = str(work.job_uid)

    def touch(_copy: dict) -> None:
        north.merge_patch(PATH, {"metadata": {"annotations": {"touched": "by its operator"}}})

    with pytest.raises(member_objects.NotYet):
        member_objects.remove(north, PYTORCH_JOBS, "default", "llama", uid, 1, touch)
    assert not north.get(PATH)["metadata"].get("deletionTimestamp")
    assert member_objects.remove(north, PYTORCH_JOBS, "default", "llama", uid, 1)


def test_it_renews_a_claim_that_grows_old_while_the_member_is_slow(member, north):
    mine = claimed(placed())
    began = mine.claimed_at
    works.renew(mine, began + timedelta(seconds=25))
    assert works.claim(mine.pk, began + timedelta(seconds=35)) is None
    assert Work.objects.get().claimed_at == began + timedelta(seconds=25)


def test_it_deletes_only_what_it_judged(member, north):
    placed()
    member.work(PYTORCH_JOBS)
    found = north.get(PATH)
    north.merge_patch(PATH, {"metadata": {"labels": {"convoy.dev/attempt": "7"}}})
    with pytest.raises(MemberChanged):
        member_objects._delete(north, PATH, found)
    assert attempt_of(north.get(PATH)) == "7"


class FromAnotherTime:
    """Reads objects as they were under another uid or version: of before their member was restored, for example."""

    def __init__(self, client, field: str) -> None:
        self._client, self._field = client, field

    def get(self, path: str):
        body = self._client.get(path)
        body["metadata"][self._field] = "1"
        return body

    def __getattr__(self, verb: str):
        return getattr(self._client, verb)


def rename(body: dict) -> None:
    body["metadata"].setdefault("annotations", {})["changed"] = "yes"


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
def test_whatever_it_writes_is_for_the_object_and_the_version_that_it_read(member, north, field):
    work = placed()
    member.work(PYTORCH_JOBS)
    before, uid = north.get(PATH), str(work.job_uid)
    kind, client = registry.kind_of(work.api_version, work.kind), FromAnotherTime(north, field)
    about = ("default", "llama", uid, 1)
    for write in (
        lambda: member_objects.remove(client, PYTORCH_JOBS, *about),
        lambda: member_objects.suspend(client, PYTORCH_JOBS, kind, *about),
        lambda: member_objects.edit(client, PYTORCH_JOBS, *about, rename),
    ):
        with pytest.raises(member_objects.NotYet):
            write()
        assert north.get(PATH) == before


def test_it_removes_nothing_of_another_owner(member, north):
    north.create(PYTORCH_JOBS.path("default"), yaml.safe_load(pytorch_job("llama")))
    before = north.get(PATH)
    assert member_objects.remove(north, PYTORCH_JOBS, "default", "llama", str(placed().job_uid), 1)
    assert north.get(PATH) == before


def test_it_takes_no_object_that_is_going_for_its_copy(member, north):
    work = placed()
    member.work(PYTORCH_JOBS)
    kind = registry.kind_of(work.api_version, work.kind)
    body = member_objects.manifest(kind, books.job("llama").manifest, labels(work.job_uid, 1))
    assert member_objects.create(north, PYTORCH_JOBS, body, str(work.job_uid), 1)
    north.merge_patch(PATH, {"metadata": {"finalizers": ["example.com/keeps-it"]}})
    north.delete(PATH)
    assert north.get(PATH)["metadata"]["deletionTimestamp"]
    with pytest.raises(member_objects.NotYet):
        member_objects.create(north, PYTORCH_JOBS, body, str(work.job_uid), 1)


def test_a_copy_that_had_succeeded_before_it_was_to_be_removed_is_believed(member, north):
    """Its watcher is late: nobody has reported it."""
    placed()
    member.work(PYTORCH_JOBS)
    north.merge_patch(f"{PATH}/status", {"status": {"conditions": [{"type": "Succeeded", "status": "True"}]}})
    slow = Reason(Code.WAITING_FOR_PODS, "not all pods run")
    failover.leave(books.job("llama"), Outcome.FAILED, slow, timezone.now(), purge=PurgeMode.DIRECTLY)
    member.work(PYTORCH_JOBS)
    assert (books.job("llama").state, books.job("llama").attempt) == ("Succeeded", 1)


def test_a_copy_that_had_succeeded_before_it_was_to_be_suspended_is_believed_and_left_alone(member, north):
    placed()
    member.work(PYTORCH_JOBS)
    north.merge_patch(f"{PATH}/status", {"status": {"conditions": [{"type": "Succeeded", "status": "True"}]}})
    actions.suspend(books.job("llama"), by="test", now=timezone.now())
    before = north.get(PATH)
    member.work(PYTORCH_JOBS)
    assert (books.job("llama").state, Work.objects.get().state) == ("Succeeded", "Applied")
    assert north.get(PATH) == before


@pytest.mark.parametrize("result", ["sent", "refused"])
def test_a_sender_that_has_lost_its_claim_records_nothing(member, result):
    late, job = sending(), books.job("llama")
    Work.objects.update(claim="another worker")
    before = Work.objects.values().get(), Job.objects.values().get(), Attempt.objects.values().get()
    if result == "sent":
        dispatcher._mark_sent(late, job, timezone.now(), ())
    else:
        dispatcher._mark_refused(late, job, "no such namespace", timezone.now())
    assert (Work.objects.values().get(), Job.objects.values().get(), Attempt.objects.values().get()) == before


def test_the_refusal_of_a_former_attempt_moves_nobody(member):
    late = sending()
    Job.objects.update(attempt=2)
    dispatcher._mark_refused(late, books.job("llama"), "no such namespace", timezone.now())
    assert (books.job("llama").state, books.job("llama").attempt, Work.objects.get().state) == (
        "Placed",
        2,
        "Withdrawing",
    )
    assert not Event.objects.filter(reason="SyncWorkFailed").exists()
