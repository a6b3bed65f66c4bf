"""A pass that would find nothing is left out; whatever changes or waits for the clock is found by the next one as before."""

import itertools
from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.db.models.sql.compiler import SQLCompiler
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from fleet.changes import journal
from fleet.kube.resources import PYTORCH_JOBS
from fleet.models import Cluster, Lease, LeaseRequests
from jobs import tasks
from jobs.models import Job, Work
from jobs.services.follow import sweep
from jobs.services.follow.sweep import Sweeper
from jobs.services.lifecycle import cycle_requests
from quotas.services import trees
from tests.quotas.core.builders import manifest, quota
from tests.support import books
from tests.support.members import eventually
from tests.support.passive import passive_member
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
NOW = timezone.now()
TICK = timedelta(seconds=2)


@pytest.fixture
def running(tmp_path):
    """A job that runs in a member, as its member has reported."""
    with passive_member(tmp_path) as member:
        books.apply(pytorch_job("llama"))
        books.cycle()
        member.work(PYTORCH_JOBS)
        path = PYTORCH_JOBS.path("default", "llama")
        member.client.merge_patch(f"{path}/status", {"status": {"conditions": [{"type": "Running", "status": "True"}]}})
        member.report(PYTORCH_JOBS)
        assert books.job("llama").state == Job.State.RUNNING
        yield member


def test_it_makes_no_pass_while_another_process_makes_one(quiet):
    Work.objects.update(state=Work.State.PENDING, due_at=NOW)
    with sweep.alone(NOW) as is_ours:
        assert is_ours and not Sweeper().run(NOW + TICK)
    assert Sweeper().run(NOW + TICK)


def test_a_pass_is_not_joined_by_another_while_one_of_its_steps_takes_longer_than_its_lock_lasts(quiet, monkeypatch):
    joined, term = [], timedelta(seconds=0.2)

    def slow(_: datetime) -> None:
        eventually(lambda: Lease.objects.get(name="task/jobs.sweep").expires_at > NOW + 2 * term, within_s=5)
        joined.append(Sweeper().run(NOW + 2 * term))

    monkeypatch.setattr(sweep, "TERM", term)
    monkeypatch.setattr(sweep, "_steps", lambda: [slow])
    Work.objects.update(state=Work.State.PENDING, due_at=NOW)
    assert Sweeper().run(NOW) and joined == [False]


def test_a_pass_makes_all_steps_though_another_process_has_taken_over_during_a_slow_one(quiet, monkeypatch):
    seconds, done = itertools.count(0, 4), []

    def taken_over(_: datetime) -> None:
        Lease.objects.filter(name="task/jobs.sweep").update(holder="another")

    monkeypatch.setattr(sweep, "_steps", lambda: [taken_over, done.append])
    Work.objects.update(state=Work.State.PENDING, due_at=NOW)
    Sweeper(lambda: float(next(seconds))).run(NOW)
    assert done == [NOW] and Lease.objects.get(name="task/jobs.sweep").holder == "another"


def test_a_check_of_health_leaves_the_jobs_to_a_pass_that_is_being_made(running):
    Job.objects.update(state=Job.State.BACKOFF, unhealthy_since=NOW - timedelta(hours=1))
    books.tolerating("llama", seconds=1)
    with sweep.alone(timezone.now()):
        tasks.check_health()
    assert books.job("llama").state == Job.State.BACKOFF
    tasks.check_health()
    assert books.job("llama").state != Job.State.BACKOFF


@pytest.fixture
def quiet(running):
    """A sweeper that has found nothing to do."""
    sweeper = Sweeper()
    assert sweeper.run(NOW)
    assert not sweeper.run(NOW + TICK)
    return sweeper


def test_a_pass_that_would_find_nothing_asks_for_the_version_of_the_journal_only(quiet):
    with CaptureQueriesContext(connection) as captured:
        assert not quiet.run(NOW + TICK)
    assert len(captured) == 1


def test_a_pass_without_anything_due_asks_few_questions_and_composes_none_of_them_anew(running, monkeypatch):
    for number in range(2):
        sweep.run(NOW + number * TICK)
    composed = []
    as_sql = SQLCompiler.as_sql
    monkeypatch.setattr(
        SQLCompiler, "as_sql", lambda self, *args, **more: composed.append(self) or as_sql(self, *args, **more)
    )
    with CaptureQueriesContext(connection) as captured:
        sweep.run(NOW + 2 * TICK)
    assert len(captured) <= 60
    assert [str(compiler.query) for compiler in composed] == []


def test_an_empty_fleet_is_left_alone_too():
    sweeper = Sweeper()
    assert sweeper.run(NOW) and not sweeper.run(NOW + TICK)


def test_the_next_pass_finds_a_change_whose_hint_was_lost(quiet):
    books.apply(pytorch_job("mistral"))
    before = cycle_requests.requests()
    assert quiet.run(NOW + TICK)
    assert cycle_requests.requests() == before + 1


def test_a_request_for_a_cycle_whose_task_was_lost_is_repeated_although_no_job_waits(quiet):
    cycle_requests.request()
    sweeper, lost = Sweeper(), cycle_requests.requests()
    assert all(sweeper.run(NOW + number * TICK) for number in range(3))
    assert cycle_requests.requests() == lost + 3
    books.cycle()
    assert sweeper.run(NOW + 3 * TICK) and not sweeper.run(NOW + 4 * TICK)
    assert cycle_requests.requests() == lost + 3


def test_a_changed_quota_is_followed_by_a_cycle_though_its_process_died_before_the_request(quiet):
    whole = {"cpu": 10**5, "memory": "900000Gi", books.GPU: 64}
    tree = manifest(quota("root", whole, whole, books.team("a", 0, 64, namespaces=["default"])))
    trees.apply(tree, by="system", now=NOW)
    LeaseRequests.objects.update(asked_at=None)
    before = cycle_requests.requests()
    assert quiet.run(NOW + TICK)
    assert cycle_requests.requests() == before + 1
    books.cycle()
    assert quiet.run(NOW + 2 * TICK) and not quiet.run(NOW + 3 * TICK)
    assert cycle_requests.requests() == before + 1


def test_a_change_without_a_line_in_the_journal_is_found_within_half_a_minute(quiet):
    version = journal.tip()
    Work.objects.update(state=Work.State.WITHDRAWING, due_at=NOW)
    assert journal.tip() == version
    assert not quiet.run(NOW + Sweeper.longest_pause - TICK)
    assert quiet.run(NOW + Sweeper.longest_pause)


def test_a_pass_is_made_again_when_the_clock_was_set_back(quiet):
    assert quiet.run(NOW - timedelta(days=1))


@pytest.mark.parametrize(
    "change",
    [
        {"state": Job.State.QUEUED},
        {"state": Job.State.DISPATCHED},
        {"state": Job.State.SUSPENDED},
        {"state": Job.State.RECLAIMING},
        {"state": Job.State.BACKOFF},
        {"state": Job.State.SUCCEEDED, "ttl_s": 3600},
        {"state": Job.State.FAILED, "charge": {"cpu": "1"}},
        {"unhealthy_since": NOW},
        {"deleting_at": NOW},
        {"cluster": None},
        {"shares": [{"cluster": "north", "attempt": 1, "replicas": 1, "state": "Running"}]},
    ],
    ids="-".join,
)
def test_what_may_become_due_by_the_clock_is_looked_at_by_every_pass(running, change, monkeypatch):
    monkeypatch.setattr("jobs.services.follow.sweep.run", lambda now, **_: None)  # what it does is tested elsewhere
    Job.objects.update(**change)
    sweeper = Sweeper()
    assert all(sweeper.run(NOW + number * TICK) for number in range(3))


@pytest.mark.parametrize(
    "state", [Work.State.PENDING, Work.State.SENDING, Work.State.SUSPENDING, Work.State.WITHDRAWING]
)
def test_a_work_that_waits_for_its_next_try_is_looked_at_by_every_pass(running, state, monkeypatch):
    monkeypatch.setattr("jobs.services.follow.sweep.run", lambda now, **_: None)
    Work.objects.update(state=state, due_at=NOW + timedelta(hours=1))
    sweeper = Sweeper()
    assert all(sweeper.run(NOW + number * TICK) for number in range(3))


def test_a_cluster_that_jobs_may_have_to_leave_is_looked_at_by_every_pass(running):
    Cluster.objects.update(taints=[{"key": "lost", "effect": "NoExecute", "timeAdded": NOW.isoformat()}])
    sweeper = Sweeper()
    assert all(sweeper.run(NOW + number * TICK) for number in range(3))


def test_a_pass_that_changed_something_is_followed_by_another(running):
    sweeper, version = Sweeper(), journal.tip()
    Job.objects.update(deleting_at=NOW)
    Work.objects.update(state=Work.State.GONE)
    assert sweeper.run(NOW) and journal.tip() > version and not Job.objects.exists()
    books.cycle()
    assert sweeper.run(NOW + TICK)
    assert not sweeper.run(NOW + 2 * TICK)
