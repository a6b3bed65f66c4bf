"""Finished jobs are deleted with all their history when their retention is over, and nothing that is still needed is."""

import itertools
from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.changes import events, journal
from fleet.core.settings import RetentionSettings
from fleet.kube.resources import PYTORCH_JOBS
from fleet.models import AuditEntry, Cluster, Event, Hold, Pod
from fleet.services.auditing import audit_chain
from jobs.core.settings import SchedulerSettings
from jobs.models import Attempt, Binding, DeletedJob, Job, Work
from jobs.services.follow import sweep
from jobs.services.follow.timeouts import retention
from jobs.services.submission.changes import actions
from tests.support import books
from tests.support.kubectl import client_of, served
from tests.support.passive import passive_member
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)

NOW = timezone.now()
KEEP = timedelta(seconds=RetentionSettings().finished_jobs_s)
LONG_AGO = NOW - KEEP - timedelta(minutes=1)


def finished(*names: str, at=LONG_AGO, state: str = "Succeeded", copies: str = "Gone") -> None:
    """Jobs that were placed, ran and ended."""
    if not Cluster.objects.exists():
        books.a_cluster(gpus=10_000)
    books.apply(*(pytorch_job(name, workers=0) for name in names))
    while books.cycle():
        pass
    rows = Job.objects.filter(name__in=names)
    rows.update(state=state, finished_at=at, charge=None)
    uids = rows.values_list("uid", flat=True)
    Work.objects.filter(job_uid__in=uids).update(state=copies)
    Hold.objects.filter(job_uid__in=uids).update(released_at=at)


def left() -> set[str]:
    return set(Job.objects.filter(deleting_at=None).values_list("name", flat=True))


def test_a_finished_job_goes_with_all_that_was_kept_of_it():
    finished("old")
    finished("new", at=NOW - KEEP + timedelta(minutes=1))
    sweep.run(NOW)
    assert left() == {"new"}
    for model in (Job, Attempt, Binding, Work, Hold):
        assert model.objects.count() == 1, model
    assert DeletedJob.objects.count() == 1, "what a late worker sends for it is not recognized"


def test_a_pass_ends_in_time_on_a_machine_that_is_slow():
    finished("a", "b", "c", "d")
    seconds = itertools.count(0, retention.PASS_S / 2)
    assert retention.run(NOW, lambda: float(next(seconds))) == 2
    assert len(left()) == 2 and retention.run(NOW) == 2


def test_its_copy_leaves_its_member_too(tmp_path):
    with passive_member(tmp_path) as member:
        books.apply(pytorch_job("llama"))
        books.cycle()
        member.work(PYTORCH_JOBS)
        status = {"conditions": [{"type": "Succeeded", "status": "True"}]}
        member.client.merge_patch(PYTORCH_JOBS.path("default", "llama") + "/status", {"status": status})
        member.report(PYTORCH_JOBS)
        later = books.job("llama").finished_at + KEEP
        Cluster.objects.update(looked_at=later, watched_until=later)
        sweep.run(later)
        assert books.job("llama").deleting_at is not None
        member.work(PYTORCH_JOBS, later)
        assert member.items(PYTORCH_JOBS) == [] and not Job.objects.exists()


@pytest.mark.parametrize(("ttl", "remains"), [(1, False), (400 * 86400, True)], ids=["shorter", "longer"])
def test_a_time_to_live_of_its_own_comes_first(ttl, remains):
    finished("own", at=NOW - timedelta(seconds=2) if ttl == 1 else LONG_AGO)
    Job.objects.update(ttl_s=ttl)
    sweep.run(NOW)
    assert left() == ({"own"} if remains else set())


def kept_copy():
    Work.objects.update(state="Kept")


def copy_being_removed():
    Work.objects.update(state="Withdrawing")


def live_pod():
    cluster, job = Cluster.objects.get(), Job.objects.get()
    Pod.objects.create(
        cluster=cluster,
        namespace="default",
        name="p",
        uid="u",
        job_uid=job.uid,
        attempt=1,
        phase="Running",
        created_at=NOW,
    )


def open_hold():
    Hold.objects.update(released_at=None)


def charge():
    Job.objects.update(charge={"pods": 1}, leaf="")


@pytest.mark.parametrize(
    "still", [kept_copy, copy_being_removed, live_pod, open_hold], ids=lambda still: still.__name__
)
def test_a_job_stays_while_something_of_it_may_still_run(still):
    finished("job")
    still()
    assert retention.run(NOW) == 0
    assert left() == {"job"} and not AuditEntry.objects.exists()


def test_a_job_stays_while_its_leaf_is_charged_for_it():
    finished("job")
    charge()
    assert retention.run(NOW) == 0


def test_a_job_stays_while_its_failures_rank_its_cluster(settings):
    finished("job")
    settings.CONVOY_SCHEDULER = SchedulerSettings(failure_half_life_s=30 * 86400)
    assert retention.run(NOW) == 0


def test_a_job_that_runs_or_waits_stays_however_old_it_is():
    finished("a", "b", "c")
    for name, state in (("a", "Running"), ("b", "Queued"), ("c", "Suspended")):
        Job.objects.filter(name=name).update(state=state, finished_at=None)
    assert retention.run(NOW) == 0


def test_many_go_in_batches_the_oldest_first_with_a_line_of_the_audit_for_each(monkeypatch):
    monkeypatch.setattr(retention, "BATCH", 4)
    finished(*(f"new{number}" for number in range(3)))
    finished(*(f"old{number}" for number in range(7)), at=LONG_AGO - timedelta(days=1))
    assert [retention.run(NOW) for _ in range(4)] == [4, 4, 2, 0]
    assert not Job.objects.exists()
    lines = AuditEntry.objects.order_by("pk")
    assert [line.message.split(" that")[0] for line in lines] == [
        f"deleted {count} finished jobs" for count in (4, 4, 2)
    ]
    assert {(line.actor, line.verb, line.kind, line.outcome, line.complete) for line in lines} == {
        ("system:retention", "delete", "Job", "done", True)
    }
    audit_chain.link_new(NOW)
    assert audit_chain.verify().fault == ""


class Killed(BaseException):
    """As kill -9 between two transactions."""


def test_a_process_that_dies_between_two_deletions_leaves_jobs_whole_and_the_next_goes_on(monkeypatch):
    finished(*(f"job{number}" for number in range(6)))
    real, calls = actions.delete, []

    def dying(job, **kw):
        calls.append(job)
        if len(calls) == 4:
            raise Killed
        return real(job, **kw)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(actions, "delete", dying)
        retention.run(NOW)
    for model in (Job, Attempt, Binding, Work, Hold):
        assert model.objects.count() == 3, model
    line = AuditEntry.objects.get()
    assert (line.outcome, line.message) == ("failed", "how it ended is not known")
    assert retention.run(NOW) == 3 and not Job.objects.exists()


def test_a_process_that_dies_within_a_deletion_leaves_that_job_whole(monkeypatch):
    finished("job")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(events, "announce", lambda *_: (_ for _ in ()).throw(Killed()))
        patch.setattr("jobs.services.failover.failover.events.announce", events.announce)
        retention.run(NOW)
    assert Job.objects.filter(deleting_at=None).count() == Work.objects.count() == Attempt.objects.count() == 1
    assert retention.run(NOW) == 1


def test_a_job_that_cannot_be_deleted_keeps_no_other(monkeypatch):
    finished("bad", "good")
    real = actions.delete

    def raising(job, **kw):
        if job.name == "bad":
            raise ValueError(job.name)
        return real(job, **kw)

    monkeypatch.setattr(actions, "delete", raising)
    assert retention.run(NOW) == 1
    assert left() == {"bad"}


def test_a_watch_of_kubectl_sees_the_deletion(admin, tmp_path):
    finished("llama")
    version = str(journal.head())
    with served(tmp_path) as kubectl:
        retention.run(NOW)
        reader = client_of(kubectl.as_user("ada").file)
        watched = reader.watch(PYTORCH_JOBS.path("default"), resource_version=version, timeout_s=120)
        deleted = next(event for event in watched if event.type == "DELETED")
    assert deleted.object["metadata"]["name"] == "llama"


def test_fleet_admins_read_in_the_audit_what_was_deleted(as_admin):
    finished("job")
    retention.run(NOW)
    [line] = as_admin.get("/api/v1/audit/?kind=Job").json()["results"]
    assert line["actor"] == "system:retention" and "deleted 1 finished job" in line["message"]


def test_old_events_go_in_batches_too(monkeypatch):
    monkeypatch.setattr(events, "_AT_ONCE", 3)
    finished("job")
    Event.objects.all().delete()
    about = journal.Change("Cluster", "", "north", "u-1", journal.Action.MODIFIED)
    for number in range(10):
        events.record(about, "Looked", f"{number}", LONG_AGO)
    events.record(about, "Looked", "new", NOW)
    events.forget_old(NOW - timedelta(days=1), NOW)
    assert [event.message for event in Event.objects.all()] == ["new"]
