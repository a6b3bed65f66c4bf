"""The clock was an hour ahead for a while and is set right: nothing that was written meanwhile is waited for an hour longer.

Each place that compares a stored time with now is here, or has such a test of its own: leases and claims of tasks
(`test_clock_steps.py`), claims and due times of works (`lifecycle/test_works.py`), circuits (`dispatch/test_circuits.py`),
taints, watches and agents (`tests/fleet`). Limits of people (time to live, retention, deadlines) last longer.
"""

from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from fleet.changes import events
from fleet.models import Cluster, EndedPod
from fleet.services.logs import reading
from jobs.core.failover.rules import Outcome, PurgeMode
from jobs.core.reasons import Code, Reason
from jobs.models import Attempt, Job, Work
from jobs.services.failover import eviction_rate, failover
from jobs.services.follow import diagnosing, sweep
from jobs.services.follow.timeouts import health
from jobs.services.scheduling import loop
from jobs.services.scheduling.decisions import preemption
from tests.jobs.services import lost_cluster
from tests.support import books, laws
from tests.support.division import FAILED, SPREAD, report_share, sweep_job
from tests.support.passive import passive_member
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db
NOW = timezone.now()
AHEAD = NOW + timedelta(hours=1)
NOT_ALL_RUN = Reason(Code.WAITING_FOR_PODS, "not all pods run")


def after(seconds: float):
    return NOW + timedelta(seconds=seconds + 1)


def cycle(at) -> int:
    loop._idle_caches.clear()
    return loop.run(lambda: at)


def test_a_job_that_never_starts_moves_when_its_time_is_over():
    lost_cluster.a_fleet()
    books.apply(POLICY, pytorch_job("llama"))
    assert cycle(AHEAD) == 1
    Work.objects.update(state=Work.State.APPLIED, applied_at=AHEAD)
    limit_s = settings.CONVOY_FAILOVER.start_timeout_s
    assert health.check(NOW) == 0 and health.check(after(limit_s - 10)) == 0
    assert health.check(after(limit_s)) == 1


def test_a_cluster_where_it_failed_is_excluded_for_the_cool_off():
    failover.leave(lost_cluster.running(), Outcome.FAILED, NOT_ALL_RUN, AHEAD, purge=PurgeMode.DIRECTLY)
    laws.remove_copies()
    cool_off_s = settings.CONVOY_FAILOVER.cool_off_s
    sweep.run(NOW)
    assert cycle(after(cool_off_s - 10)) == 0
    assert cycle(after(cool_off_s)) == 1


def test_a_copy_that_is_evicted_has_its_grace_period_and_no_more():
    preemption.evict_reclaimed(lost_cluster.running(), "another job needs its place", AHEAD)
    Work.objects.update(state=Work.State.SUSPENDING)
    preemption.advance(NOW)
    assert Work.objects.get().state == Work.State.SUSPENDING
    preemption.advance(after(30))
    assert Work.objects.get().state == Work.State.WITHDRAWING


def test_an_unhealthy_share_moves_when_its_toleration_is_over():
    for name in ("north", "south"):
        books.a_cluster(name, gpus=3)
    books.apply(SPREAD, sweep_job(pods=6, completions=9))
    assert cycle(NOW) == 1
    Work.objects.update(state=Work.State.APPLIED, applied_at=NOW)
    job = report_share(2, FAILED)
    job.shares[1]["unhealthy_since"] = AHEAD.isoformat()
    job.save(update_fields=["shares"])
    sweep.run(NOW)
    assert Attempt.objects.get(number=2).outcome == ""
    sweep.run(after(0))
    assert Attempt.objects.get(number=2).outcome == "Failed"


def test_evictions_of_a_minute_are_counted_anew():
    cluster = books.a_cluster("north")
    assert eviction_rate.allow(cluster, AHEAD, 10**6) < 10**6 and eviction_rate.allow(cluster, AHEAD) == 0
    assert eviction_rate.allow(cluster, NOW) == 1


def test_the_logs_of_a_failed_attempt_are_read(monkeypatch):
    lost_cluster.running()
    Attempt.objects.update(log_due_at=AHEAD)
    enqueued = []
    monkeypatch.setattr(events, "enqueue", lambda task, *args, **_: enqueued.append((task, *args)))
    diagnosing.request_due(NOW)
    assert enqueued == [("jobs.diagnose", str(Job.objects.get().uid), 1)]
    assert diagnosing.run(Job.objects.get().uid, 1, NOW)


def test_the_logs_of_an_ended_pod_are_kept(tmp_path):
    with passive_member(tmp_path):
        cluster = Cluster.objects.get()
        names = {"cluster_name": cluster.name, "namespace": "default", "name": "p", "uid": "u", "pod": "{}"}
        owner = {"cluster_uid": cluster.uid, "job_uid": cluster.uid, "attempt": 1}
        EndedPod.objects.create(cluster=cluster, ended_at=AHEAD, due_at=AHEAD, **names, **owner)
        assert reading.read_due(cluster.pk, lambda: NOW)
        assert EndedPod.objects.get().state == EndedPod.State.LOST, "its pod is gone: it was asked for"
