"""A policy that is deleted, and applied anew, while its jobs run: they keep what it promised them."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.models import Event, JournalEntry
from jobs.models import Job, Policy, Work
from jobs.services.follow import sweep
from jobs.services.follow.timeouts import health
from jobs.services.submission import policy_claims
from jobs.services.submission.changes import actions
from jobs.snapshot import spec_of
from tests.support import books
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db
FAILOVER = POLICY.replace(
    "  propagateDeps: true",
    """  failover: {application: {decisionConditions: {tolerationSeconds: 5}}}
  propagateDeps: true""",
)


@pytest.fixture
def running():
    """llama runs, and bert waits."""
    books.a_cluster(gpus=3)
    books.apply(FAILOVER, pytorch_job("llama"))
    books.cycle()
    Work.objects.update(state=Work.State.APPLIED, applied_at=timezone.now())
    books.report("llama", "Running")
    books.apply(FAILOVER, pytorch_job("bert"))
    return books.job("llama")


def delete() -> None:
    actions.delete_policy(Policy.objects.get(), by="ada", now=timezone.now())


def test_it_says_how_many_jobs_the_deletion_concerns(running):
    delete()
    told = Event.objects.get(reason="PolicyDeletedInUse")
    assert told.type == "Warning" and "1 placed jobs keep it as it was, and 1 waiting ones do not start" in told.message


def test_a_running_job_keeps_its_failover(running):
    delete()
    books.report("llama", "Failed")
    assert books.job("llama").state == "Backoff"
    assert health.check(timezone.now() + timedelta(minutes=1)) == 1
    assert books.job("llama").state == "Moving"
    books.cycle()
    assert books.job("llama").reason["code"] == "NoPolicy"


def test_whoever_follows_a_waiting_job_learns_that_its_policy_is_gone(running):
    """The scheduler's cache does, and would place it."""
    before = books.job("bert").resource_version
    delete()
    bert = books.job("bert")
    assert bert.resource_version > before
    assert JournalEntry.objects.filter(object_uid=bert.uid, version=bert.resource_version).exists()


def test_jobs_get_a_policy_that_is_applied_anew_whatever_their_state(running):
    delete()
    books.apply(FAILOVER.replace("tolerationSeconds: 5", "tolerationSeconds: 77"))
    sweep.run(timezone.now())
    assert all(Job.objects.values_list("policy", flat=True))
    assert spec_of(books.job("llama")).application_toleration_s == 77


def test_a_job_that_ended_without_its_policy_or_is_being_deleted_gets_no_other(running):
    delete()
    books.report("llama", "Succeeded")
    Job.objects.filter(name="bert").update(deleting_at=timezone.now())
    books.apply(FAILOVER)
    policy_claims.claim_unclaimed(timezone.now())
    assert books.job("llama").policy is None and books.job("bert").policy is None


def test_a_deletion_that_concerns_nobody_warns_nobody():
    books.apply(FAILOVER)
    delete()
    assert not Event.objects.filter(reason="PolicyDeletedInUse").exists()


def test_a_policy_says_how_often_its_jobs_may_fail(running, settings):
    settings.CONVOY_FAILOVER = replace(settings.CONVOY_FAILOVER, max_attempts=6)
    books.apply(
        FAILOVER.replace("name: example-policy", 'name: example-policy, annotations: {convoy.dev/max-attempts: "1"}')
    )
    books.report("llama", "Failed")
    assert health.check(timezone.now() + timedelta(minutes=1)) == 1
    job = books.job("llama")
    assert (job.state, job.reason["code"]) == ("Failed", "AttemptsExhausted")
    assert job.reason["message"].startswith("failed 1 times, the last time because unhealthy on north")


@pytest.mark.parametrize("value", ["0", "-1", "x", "1000", "1.5", ""])
def test_a_policy_with_no_sensible_number_is_refused(value):
    with pytest.raises(Exception, match="must be a whole number from 1 to 999"):
        books.apply(FAILOVER.replace("example-policy", f'p, annotations: {{convoy.dev/max-attempts: "{value}"}}'))
