"""Which policy a job belongs to, whichever of them comes first."""

import pytest
import yaml
from django.utils import timezone

from fleet.models import JournalEntry
from jobs.models import Job, Policy
from jobs.services.follow import sweep
from jobs.services.submission import manifests, submit
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db


def apply(*texts: str) -> None:
    submit.apply(manifests.parse("\n---\n".join(texts).encode()), by="ada", now=timezone.now())


def claimed_by(name: str) -> str:
    policy = Job.objects.get(name=name).policy
    return policy.name if policy else ""


def test_it_gives_a_new_job_its_policy_at_once_and_says_so_once():
    apply(POLICY)
    apply(pytorch_job("train"))
    assert claimed_by("train") == "example-policy"
    assert JournalEntry.objects.filter(kind="PyTorchJob").count() == 1


def test_it_claims_the_jobs_that_wait_for_a_policy_when_it_comes():
    apply(pytorch_job("early"))
    assert claimed_by("early") == ""
    apply(POLICY)
    assert claimed_by("early") == "example-policy"


def test_it_finds_in_the_sweep_who_was_submitted_while_the_policy_was_being_written():
    apply(pytorch_job("early"))
    Policy.objects.create(
        kind="PropagationPolicy",
        namespace="default",
        name="late",
        manifest=yaml.safe_load(POLICY),
        created_at=timezone.now(),
    )
    sweep.run(timezone.now())
    assert claimed_by("early") == "late"
