"""Terminal is terminal (I6): by whatever way a job ends, no copy of it runs on, and it holds and is charged nothing."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.models import Cluster, Hold
from jobs.core.failover.rules import Outcome
from jobs.core.reasons import Code, Reason
from jobs.models import Attempt, Job, Work
from jobs.services.dispatch import dispatcher
from jobs.services.failover import division, failover
from jobs.services.follow.status import JobEventHandler
from jobs.services.follow.timeouts import health
from jobs.services.lifecycle import works
from quotas.services import trees
from tests.quotas.core.builders import manifest, quota
from tests.support import books, laws
from tests.support.books import GPU, team
from tests.support.division import BY_ROOM, report_share, sweep_job
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db
WHOLE = {"cpu": 10**5, "memory": "900000Gi", GPU: 99, "kube-queue/max-jobs": 1000}
FAILOVER = """  failover: {application: {decisionConditions: {tolerationSeconds: 5}}}
  propagateDeps: true"""
LOST = Reason(Code.CLUSTER_LOST, "it is gone")
SPREAD = BY_ROOM.replace(
    "{replicaScheduling", "{spreadConstraints: [{spreadByField: cluster, maxGroups: 2}], replicaScheduling"
)


@pytest.fixture(autouse=True)
def last_attempt(settings):
    """The next failure ends a job."""
    settings.CONVOY_FAILOVER = replace(settings.CONVOY_FAILOVER, max_attempts=1)
    root = quota("root", WHOLE, WHOLE, team("a", 3, 90, namespaces=["default"]))
    trees.apply(manifest(root), by="system", now=timezone.now())


def on_member(policy: str = POLICY.replace("  propagateDeps: true", FAILOVER)) -> Job:
    """A job whose copy is in its member, which has said nothing of it yet."""
    books.a_cluster()
    books.apply(policy, pytorch_job("llama"))
    books.cycle()
    Work.objects.update(state=Work.State.APPLIED, applied_at=timezone.now())
    Job.objects.update(state=Job.State.DISPATCHED)
    return books.job("llama")


def report(condition: str, seconds: float = 0.0) -> None:
    books.report("llama", condition, now=timezone.now() + timedelta(seconds=seconds))


def later(seconds: float) -> None:
    health.check(timezone.now() + timedelta(seconds=seconds))


def succeeds():
    on_member()
    report("Succeeded")


def fails_without_failover():
    on_member(POLICY)
    report("Failed")


def failed_and_is_not_tolerated():
    on_member()
    report("Failed")
    later(60)


def restarts_too_long():
    on_member()
    report("Running")
    report("Restarting")
    later(60)


def never_starts():
    on_member()
    later(3600)


def is_refused():
    on_member()
    Work.objects.update(state=Work.State.SENDING)
    work = works.claim(Work.objects.get().pk, timezone.now())
    dispatcher._mark_refused(work, books.job("llama"), "quota exceeded", timezone.now())


def loses_its_copy_too_often():
    on_member()
    report("Running")
    here = Cluster.objects.get().pk
    JobEventHandler().on_delete(here, books.resource("llama"), [books.copy("llama", {})], timezone.now())


def spent_its_attempts_before_its_cluster_was_lost():
    job = on_member()
    report("Running")
    now = timezone.now()
    Attempt.objects.create(job=job, number=0, cluster_name="south", placed_at=now, ended_at=now, outcome="Failed")
    Cluster.objects.update(state=Cluster.State.UNKNOWN)
    failover.leave(books.job("llama"), Outcome.LOST, LOST, now)


def spent_its_attempts_while_a_copy_is_kept():
    failed_and_is_not_tolerated()
    Work.objects.update(state=Work.State.KEPT)


def succeeds_while_it_makes_room():
    on_member()
    report("Running")
    Job.objects.update(state=Job.State.RECLAIMING, reclaim={"until": timezone.now().isoformat()})
    Work.objects.update(state=Work.State.WITHDRAWING)
    report("Succeeded")


def succeeded_while_its_cluster_was_lost():
    on_member()
    report("Running")
    failover.leave(books.job("llama"), Outcome.LOST, LOST, timezone.now())
    report("Succeeded")


def divided(policy: str = SPREAD) -> Job:
    for name, gpus in (("north", 5), ("south", 3)):
        books.a_cluster(name, gpus=gpus)
    books.apply(policy, sweep_job(pods=6))
    books.cycle()
    Work.objects.update(state=Work.State.APPLIED, applied_at=timezone.now())
    return Job.objects.get()


FAILED = {"conditions": [{"type": "Failed", "status": "True", "message": "BackoffLimitExceeded"}]}
DONE = {"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 4}


def one_share_fails():
    divided("\n".join(line for line in SPREAD.splitlines() if "failover" not in line))
    report_share(2, {"active": 2}, running=2)
    report_share(1, FAILED)


def one_share_succeeded_before_another_fails():
    divided("\n".join(line for line in SPREAD.splitlines() if "failover" not in line))
    report_share(1, DONE)
    report_share(2, FAILED)


def a_live_share_spends_the_attempts():
    job = divided()
    report_share(1, {"active": 4}, running=4)
    division.leave(job, 2, Outcome.FAILED, LOST, timezone.now())


def a_share_fails_while_another_is_lost():
    job = divided("\n".join(line for line in SPREAD.splitlines() if "failover" not in line))
    division.leave(job, 2, Outcome.LOST, LOST, timezone.now())
    report_share(1, FAILED)


WAYS = [
    succeeds,
    fails_without_failover,
    failed_and_is_not_tolerated,
    restarts_too_long,
    never_starts,
    is_refused,
    loses_its_copy_too_often,
    spent_its_attempts_before_its_cluster_was_lost,
    spent_its_attempts_while_a_copy_is_kept,
    succeeds_while_it_makes_room,
    succeeded_while_its_cluster_was_lost,
    one_share_fails,
    one_share_succeeded_before_another_fails,
    a_live_share_spends_the_attempts,
    a_share_fails_while_another_is_lost,
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_it_keeps_nothing_of_a_job_that_is_over(way):
    way()
    job = Job.objects.get()
    assert job.finished, (job.state, job.reason)
    laws.terminal_holds_nothing()
    laws.remove_copies()
    laws.terminal_holds_nothing()
    assert not Hold.objects.filter(released_at__isnull=True).exists()
    assert Job.objects.get().charge is None and books.used("root/a")[GPU] == 0


def test_it_keeps_hold_and_charge_of_a_copy_that_runs_on_until_it_is_removed():
    restarts_too_long()
    job = Job.objects.get()
    assert (job.state, job.reason["code"]) == ("Failed", "AttemptsExhausted")
    assert Work.objects.get().state == Work.State.WITHDRAWING
    assert Hold.objects.get().released_at is None and books.used("root/a")[GPU] == 3
    laws.remove_copies()
    assert Hold.objects.get().released_at is not None and books.used("root/a")[GPU] == 0


def test_it_leaves_a_copy_that_has_ended_in_its_member_for_its_logs():
    failed_and_is_not_tolerated()
    assert Work.objects.get().state == Work.State.APPLIED


def test_it_ignores_what_a_copy_says_that_is_being_removed():
    restarts_too_long()
    report("Running")
    assert Job.objects.get().state == "Failed"
    JobEventHandler().on_delete(
        Cluster.objects.get().pk, books.resource("llama"), [books.copy("llama", {})], timezone.now()
    )
    assert Job.objects.get().state == "Failed" and Job.objects.get().attempt == 1
