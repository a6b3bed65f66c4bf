"""Why a share of a divided job failed is kept with its attempt, and counts in the budget and the back-off of its cause."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.models import Cluster, Pod
from jobs import snapshot
from jobs.models import Attempt, Job, Work
from jobs.services.follow import sweep
from jobs.services.scheduling import loop
from jobs.services.submission import manifests, submit
from tests.support.books import a_cluster
from tests.support.division import FAILED, NO_FAILOVER, SPREAD, report_share, sweep_job

pytestmark = pytest.mark.django_db


def divided(policy: str = SPREAD) -> None:
    """Attempt 1 on north, 2 on south; east has room for another share."""
    for name, gpus in (("north", 5), ("south", 3), ("east", 2)):
        a_cluster(name, gpus=gpus)
    submit.apply(manifests.parse(f"{policy}\n---\n{sweep_job(pods=6)}".encode()), by="test", now=timezone.now())
    assert loop.run(timezone.now) == 1
    Work.objects.update(state=Work.State.APPLIED)


def fail(attempt: int, **pod) -> Job:
    """A pod of the share has ended like this, and the member reports the share as failed."""
    cluster = Cluster.objects.get(name={1: "north", 2: "south"}[attempt])
    known = {"phase": "Failed", "node": "node", "created_at": timezone.now(), "uid": f"p{attempt}"}
    job = Job.objects.get()
    fields = {**known, **pod, "job_uid": job.uid, "attempt": attempt}
    Pod.objects.create(cluster=cluster, namespace="default", name=f"sweep-{attempt}", **fields)
    return report_share(attempt, FAILED)


def leave() -> Job:
    """The toleration is over, and the member has cleaned up the pods meanwhile."""
    Pod.objects.all().delete()
    sweep.run(timezone.now() + timedelta(seconds=1))
    return Job.objects.get()


def test_it_keeps_the_cause_of_a_share_that_fails_whose_pods_are_gone_when_it_leaves():
    divided()
    fail(2, reason="OOMKilled", exit_code=137)
    job = leave()
    attempt = Attempt.objects.get(number=2)
    assert (attempt.cause, [pod["pod"] for pod in attempt.evidence]) == ("OutOfMemory", ["sweep-2"])
    assert (job.state, job.reason["cause"]) == ("Moving", "OutOfMemory")


def test_it_fails_with_the_cause_without_a_failover_policy():
    divided(NO_FAILOVER)
    job = fail(1, exit_code=1, reason="Error")
    assert (job.state, job.reason["cause"]) == ("Failed", "CodeError")
    assert "CodeError: sweep-1" in job.reason["message"]


def test_the_failures_of_shares_spend_the_budget_of_their_cause(settings):
    settings.CONVOY_FAILOVER = replace(settings.CONVOY_FAILOVER, max_code_errors=1)
    divided()
    fail(2, exit_code=1, reason="Error")
    job = leave()
    assert (job.state, job.reason["code"], job.reason["cause"]) == ("Failed", "AttemptsExhausted", "CodeError")


@pytest.mark.parametrize(("pod", "excluded"), [({"reason": "NodeLost"}, []), ({"exit_code": 1}, ["south"])])
def test_a_share_that_lost_its_node_once_may_return_to_its_cluster(pod, excluded):
    divided()
    fail(2, **pod)
    leave()
    (gang,) = snapshot.load_gangs(snapshot.waiting_jobs())
    assert list(gang.excluded) == excluded
