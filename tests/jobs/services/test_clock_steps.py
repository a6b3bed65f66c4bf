"""One machine's clock is an hour wrong: its process takes from others nothing that is theirs, and keeps nothing that is not.

This process is the one whose clock is wrong; rows have the times of the database's clock, as another process would write
them. On SQLite all processes share one machine's clock.
"""

import random
import threading
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.utils import timezone

from fleet import tasks as fleet_tasks
from fleet.db import clock
from fleet.models import Cluster, Heartbeat, Lease, Token
from fleet.services.operations import processes
from fleet.services.watching import leases
from fleet.services.watching.manager import WatchManager
from jobs import tasks
from jobs.models import Job, Work
from jobs.services.follow.timeouts import health
from jobs.services.lifecycle import cycle_requests, works
from jobs.services.scheduling.decisions import lease
from tests.jobs.services import lost_cluster
from tests.support import books
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)
_real_now = timezone.now


def shared_now() -> datetime:
    return _real_now()


@pytest.fixture(params=[HOUR, -HOUR], ids=["ahead", "behind"])
def wrong_clock(request, monkeypatch):
    if connection.vendor != "postgresql":
        pytest.skip("all processes share one clock on SQLite")
    monkeypatch.setattr(timezone, "now", lambda: _real_now() + request.param)
    return request.param


def test_the_time_is_the_databases(wrong_clock):
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(minutes=1)


def test_a_cycle_does_not_run_while_another_process_runs_one(wrong_clock):
    books.a_cluster()
    books.apply(pytorch_job("llama"))
    epoch = lease.acquire("other", shared_now())
    tasks.schedule()
    assert Lease.objects.get(name=cycle_requests.LEASE).epoch == epoch
    assert books.job("llama").state == "Queued"


def test_a_lease_that_it_takes_ends_for_the_others_when_it_dies(wrong_clock):
    lease.acquire("this", clock.now())
    ends = Lease.objects.get(name=cycle_requests.LEASE).expires_at
    assert timedelta() < ends - shared_now() <= timedelta(seconds=30)


def test_a_work_that_another_worker_has_claimed_is_left_to_it(wrong_clock):
    books.a_cluster()
    books.apply(pytorch_job("llama"))
    books.cycle(shared_now())
    work = Work.objects.get()
    assert works.claim(work.pk, shared_now())
    tasks.push(work.pk)
    tasks.sweep()
    assert Work.objects.get().tries == 1


def test_a_periodic_task_of_another_process_is_not_joined(wrong_clock):
    Lease.objects.create(name="task/fleet.housekeeping", holder="other", expires_at=shared_now() + timedelta(minutes=4))
    Heartbeat.objects.create(role="worker", instance="gone", at=shared_now() - timedelta(hours=3))
    fleet_tasks.housekeeping()
    assert Heartbeat.objects.filter(instance="gone").exists()


def test_watchers_share_the_members_and_take_none_from_each_other(wrong_clock):
    now = shared_now()
    for number in range(4):
        Cluster.objects.create(name=f"m{number}", access={}, state="Ready", state_since=now, joined_at=now)
    other = "other"
    processes.beat(leases.ROLE, now, other)
    wrong = WatchManager(threading.Event(), random.Random(0))
    processes.beat(leases.ROLE, clock.now(), wrong.instance)
    for _ in range(3):
        leases.rebalance(wrong.instance, clock.now())
        leases.rebalance(other, shared_now())
    assert sorted(map(len, leases.owners(shared_now()).values())) == [2, 2]
    assert set(Lease.objects.filter(name__startswith="watch/").values_list("epoch", flat=True)) == {1}
    # It dies: the other has all members once the term is over, and not an hour later.
    later = shared_now() + timedelta(seconds=30)
    processes.beat(leases.ROLE, later, other)
    leases.rebalance(other, later)
    assert len(leases.owners(later)[other]) == 4


def test_a_token_counts_as_long_as_it_should(wrong_clock, as_viewer):
    Token.objects.update(expires_at=shared_now() + timedelta(minutes=30))
    assert as_viewer.get("/api/v1/jobs/").status_code == 200
    Token.objects.update(expires_at=shared_now() - timedelta(minutes=30))
    if Token.objects.exists():
        assert as_viewer.get("/api/v1/jobs/").status_code == 401


def test_a_job_is_not_deleted_before_its_time_to_live_is_over_nor_kept_after(wrong_clock):
    books.a_cluster()
    books.apply(pytorch_job("old"), pytorch_job("new"))
    Job.objects.update(state="Succeeded", ttl_s=3600, charge=None)
    for name, minutes in (("old", 90), ("new", 30)):
        Job.objects.filter(name=name).update(finished_at=shared_now() - timedelta(minutes=minutes))
    tasks.sweep()
    assert list(Job.objects.filter(deleting_at=None).values_list("name", flat=True)) == ["new"]


def test_what_it_submits_takes_its_turn_by_the_shared_clock(wrong_clock, as_admin):
    books.a_cluster()
    assert as_admin.post("/api/v1/apply", pytorch_job("llama"), content_type="application/yaml").status_code < 300
    assert abs(books.job("llama").queued_at - shared_now()) < timedelta(minutes=1)


def test_an_unhealthy_time_from_before_the_clock_stepped_back_begins_again():
    lost_cluster.running()
    now = timezone.now()
    Job.objects.update(state="Backoff", unhealthy_since=now + HOUR)
    health.check(now)
    assert (books.job("llama").state, books.job("llama").unhealthy_since) == ("Backoff", now)
    Cluster.objects.update(last_heartbeat=now + timedelta(seconds=6))
    health.check(now + timedelta(seconds=6))
    assert books.job("llama").state != "Backoff"
