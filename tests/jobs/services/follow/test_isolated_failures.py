"""One object whose handling raises ends nothing for the others, in whichever sweep: it is left out, logged, and tried again."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest
from django.db import OperationalError, connection, transaction
from django.utils import timezone
from prometheus_client import REGISTRY

from fleet.db import isolation
from fleet.member.watching import Changed, Item
from fleet.models import Cluster, Heartbeat
from fleet.services.clusters import freshness
from fleet.services.clusters import health as cluster_health
from fleet.services.operations import processes
from fleet.services.watching import reports
from jobs.core.policies import propagation
from jobs.models import Attempt, Binding, Job, Work
from jobs.services.dispatch import dispatcher, pushing
from jobs.services.failover import failover, returns
from jobs.services.follow import member_copies, status, sweep
from jobs.services.follow.timeouts import expiry, health
from jobs.services.lifecycle.accounting import charges
from jobs.services.scheduling import loop
from jobs.services.scheduling.decisions import preemption
from jobs.services.submission import policy_claims
from jobs.services.submission.changes import actions
from tests.support import books
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
NOW = timezone.now()
LONG_AGO = NOW - timedelta(hours=2)
NAMES = ("bad", "good", "better")


class Poison(Exception):
    """What nobody foresaw."""


@dataclass(frozen=True)
class Sweep:
    name: str
    arrange: Callable[[], object]
    """Makes all three jobs due."""
    run: Callable[..., object]
    inner: tuple[object, str]
    """The function that raises for the job named bad."""
    settled: Callable[[], set[str]]
    """Names of the jobs that were handled."""


def placed():
    books.a_cluster()
    books.apply(*(pytorch_job(name, workers=0) for name in NAMES))
    books.cycle()
    assert Job.objects.filter(state="Placed").count() == 3


def on_lost_cluster():
    placed()
    taint = {
        "key": "cluster.karmada.io/unreachable",
        "value": "",
        "effect": "NoExecute",
        "timeAdded": LONG_AGO.isoformat(),
    }
    Cluster.objects.update(state="Unknown", taints=[taint], looked_at=NOW)


def unhealthy():
    placed()
    Job.objects.update(state="Backoff", unhealthy_since=LONG_AGO)
    books.tolerating("bad", seconds=1)


def never_started():
    placed()
    Work.objects.update(state="Applied", applied_at=LONG_AGO)
    Binding.objects.update(scheduled_at=LONG_AGO)


def detached():
    placed()
    Work.objects.all().delete()
    Job.objects.update(cluster=None)


def over():
    placed()
    Job.objects.update(state="Succeeded", finished_at=LONG_AGO, ttl_s=1, charge=None)
    Work.objects.update(state="Gone")


def deleted():
    over()
    Job.objects.update(deleting_at=LONG_AGO)


def left_behind():
    placed()
    Work.objects.update(state="Applied")
    Job.objects.update(state="Moving", cluster=None)
    Attempt.objects.update(ended_at=LONG_AGO, outcome="Lost")


def evicted():
    placed()
    Work.objects.update(state="Gone")
    Job.objects.update(
        state="Reclaiming", charge={"pods": 1}, reclaim={"until": LONG_AGO.isoformat(), "message": "for another"}
    )


def due():
    placed()
    Work.objects.update(due_at=LONG_AGO)


def unclaimed():
    placed()
    Job.objects.update(policy=None)


def names(**fields: object) -> Callable[[], set[str]]:
    return lambda: set(Job.objects.filter(**fields).values_list("name", flat=True))


def forgotten() -> set[str]:
    return set(NAMES) - set(Job.objects.values_list("name", flat=True))


def tried() -> set[str]:
    return set(Work.objects.filter(tries__gt=0).values_list("name", flat=True))


def push(now) -> None:
    pushing.push(list(works_due()), lambda: now)


def works_due():
    return Work.objects.order_by("name").values_list("pk", flat=True)


SWEEPS = [
    Sweep("unhealthy", unhealthy, health.check, (failover, "leave"), names(state="Moving")),
    Sweep("lost cluster", on_lost_cluster, health.check, (failover, "leave"), names(state="Moving")),
    Sweep("toleration", on_lost_cluster, health.check, (returns, "may_stay"), names(state="Moving")),
    Sweep("never started", never_started, health.check, (failover, "leave"), names(state="Moving")),
    Sweep("detached", detached, health.check, (failover, "leave"), names(state="Moving")),
    Sweep("expiry", over, expiry.run, (actions, "delete"), forgotten),
    Sweep("deletion", deleted, sweep._finish_deletions, (failover, "finish_deletion"), forgotten),
    Sweep("adoption", left_behind, returns.adopt, (returns, "come_back"), names(state="Dispatched")),
    Sweep("eviction", evicted, loop.advance_evictions, (preemption, "_advance"), names(state="Queued")),
    Sweep(
        "policies", unclaimed, policy_claims.claim_unclaimed, (propagation, "match_policy"), names(policy__isnull=False)
    ),
    Sweep("dispatch", due, push, (dispatcher, "_act_on_state"), tried),
]


def poison(monkeypatch, target, is_bad) -> None:
    module, attribute = target
    real = getattr(module, attribute)

    def raising(*args, **kw):
        if is_bad(*args, **kw):
            raise Poison
        return real(*args, **kw)

    monkeypatch.setattr(module, attribute, raising)


def is_bad(*args, **kw) -> bool:
    return "bad" in (getattr(args[0], "name", ""), kw.get("name"))


def failures() -> float:
    return sum(
        sample.value
        for family in REGISTRY.collect()
        if family.name == "convoy_isolated_failures"
        for sample in family.samples
        if sample.name.endswith("_total")
    )


@pytest.mark.parametrize("swept", SWEEPS, ids=lambda swept: swept.name)
def test_a_job_that_raises_ends_nothing_for_the_others(swept, monkeypatch):
    swept.arrange()
    before = failures()
    with monkeypatch.context() as patch:
        poison(patch, swept.inner, is_bad)
        swept.run(NOW)
        assert {"good", "better"} <= swept.settled()
        assert failures() > before
    assert swept.name == "dispatch" or "bad" not in swept.settled()
    swept.run(NOW + timedelta(seconds=3))
    assert swept.settled() == set(NAMES)


def test_a_job_that_keeps_raising_is_tried_less_and_less_often(monkeypatch):
    deleted()
    with monkeypatch.context() as patch:
        poison(patch, (failover, "finish_deletion"), is_bad)
        before = failures()
        for second in range(0, 60, 2):
            sweep._finish_deletions(NOW + timedelta(seconds=second))
        assert failures() - before == 5
    sweep._finish_deletions(NOW - timedelta(hours=1))
    assert not Job.objects.exists()


def test_a_batch_is_taken_apart_down_to_what_fails():
    seen = []

    def handle(batch):
        seen.append(len(batch))
        if 37 in batch:
            raise Poison
        return len(batch)

    before = failures()
    assert sum(isolation.together("batch", list(range(100)), handle, NOW)) == 99
    assert len(seen) < 20
    assert failures() - before == 1, "what was left out counts, not each part of the batch that it was in"
    assert isolation.together("batch", list(range(100)), handle, NOW) == [99]


def test_a_database_that_is_away_ends_the_pass(monkeypatch):
    def handle(_):
        raise OperationalError("the connection is lost")

    monkeypatch.setattr(isolation, "_is_usable", lambda: False)
    with pytest.raises(OperationalError):
        isolation.each("database", [1, 2], handle, NOW)


def test_what_ends_a_pass_on_purpose_ends_it():
    class LeaseLost(isolation.Ends):
        pass

    def handle(_):
        raise LeaseLost

    with pytest.raises(LeaseLost):
        isolation.each("lease", [1, 2], handle, NOW)


def test_a_step_of_the_sweep_that_raises_ends_none_of_the_others(monkeypatch):
    evicted()
    monkeypatch.setattr(charges, "release", lambda now: 1 / 0)
    sweep.run(NOW)
    assert names(state="Queued")() == set(NAMES)


def test_a_job_whose_report_raises_stops_no_other_report(monkeypatch):
    placed()
    books.sent()
    poison(monkeypatch, (status, "_apply_status"), is_bad)
    resource, cluster = books.resource("bad"), Cluster.objects.get()
    running = {"conditions": [{"type": "Running", "status": "True"}]}
    batch = reports.Batch(present={("default", name): books.copy(name, running) for name in NAMES})
    status.register()
    reports.deliver(cluster.pk, {resource: batch}, set(), NOW)
    assert names(state="Running")() == {"good", "better"}


def test_a_deleted_copy_whose_statement_the_database_refuses_stops_no_other(monkeypatch):
    """Within the transaction of the watch, which on PostgreSQL takes nothing more after a refused statement."""
    placed()
    Work.objects.update(state="Applied", applied_at=LONG_AGO)
    judge = member_copies.judge

    def refused(cluster_id, resource, objects, now):
        if any(copy["metadata"]["name"] == "bad" for copy in objects):
            with connection.cursor() as cursor:
                cursor.execute("SELECT nothing FROM nowhere")
        return judge(cluster_id, resource, objects, now)

    monkeypatch.setattr(member_copies, "judge", refused)
    resource, cluster = books.resource("bad"), Cluster.objects.get()
    batch = reports.Batch()
    for name in NAMES:
        batch.add(Changed(resource, Item(("default", name), books.copy(name, {})), gone=True))
    status.register()
    with transaction.atomic():
        reports.deliver(cluster.pk, {resource: batch}, set(), NOW)
    assert names(state="Placed")() == {"bad"}


def test_a_job_whose_pods_raise_stops_no_other_s(monkeypatch):
    placed()
    books.sent()
    Job.objects.update(state="Dispatched", status={"conditions": [{"type": "Running", "status": "True"}]})
    poison(monkeypatch, (status, "_apply_status"), is_bad)
    status.register()
    keys = {(job.uid, job.attempt) for job in Job.objects.all()}
    reports.deliver(Cluster.objects.get().pk, {}, keys, NOW)
    assert names(state="Running")() == {"good", "better"}


def test_a_copy_that_is_missing_and_raises_stops_no_other(monkeypatch):
    placed()
    Work.objects.update(state="Applied", applied_at=LONG_AGO)
    bad = books.job("bad").uid
    poison(monkeypatch, (status, "_handle_missing_copy"), lambda cluster, key, now: key[0] == bad)
    handler, cluster, resource = status.JobEventHandler(), Cluster.objects.get().pk, books.resource("bad")
    handler.on_resync(cluster, resource, handler.expected(cluster, resource), NOW)
    assert names(state="Placed")() == {"bad"}


def three_clusters():
    for name in NAMES:
        books.a_cluster(name)
    Cluster.objects.update(state="NotReady")


@pytest.mark.parametrize("inner", ["_look_at", "_move"])
def test_a_cluster_whose_look_raises_is_left_as_it_was_and_stops_no_other(inner, monkeypatch):
    three_clusters()
    monkeypatch.setattr(cluster_health, "_look_at", lambda row: cluster_health.Look(True, True))
    poison(monkeypatch, (cluster_health, inner), is_bad)
    cluster_health.check_all(NOW)
    assert set(Cluster.objects.filter(state="Ready").values_list("name", flat=True)) == {"good", "better"}


def test_a_cluster_whose_picture_raises_stops_no_other(monkeypatch):
    three_clusters()
    Cluster.objects.update(watched_since=LONG_AGO, watched_until=LONG_AGO)
    bad = Cluster.objects.get(name="bad").pk
    poison(monkeypatch, (freshness, "_mark"), lambda pk, now: pk == bad)
    freshness.review(NOW)
    assert Cluster.objects.filter(stale_since__isnull=False).count() == 2


def test_history_that_cannot_be_deleted_keeps_nothing_else(monkeypatch):
    Heartbeat.objects.create(role="worker", instance="gone", at=LONG_AGO)
    monkeypatch.setattr(processes.journal, "compact", lambda lines: 1 / 0)
    processes.tidy(NOW)
    assert not Heartbeat.objects.exists()
