"""A namespace whose deletion was interrupted is deleted to its end, and nothing beside it."""

from datetime import timedelta

import pytest
import yaml
from django.utils import timezone

from fleet.models import Namespace
from fleet.services.authorization import namespaces
from jobs.core.topology import network
from jobs.models import Dependent, Job, Policy
from jobs.services.follow import sweep
from jobs.services.submission import submit
from jobs.services.submission.changes import interrupted_deletions
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
NOW = timezone.now()
LATER = NOW + interrupted_deletions.AFTER + timedelta(seconds=1)


def filled(namespace: str, settings: str = "settings") -> None:
    """With a job, a policy and a ConfigMap."""
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": settings}, "data": {}}
    documents = [yaml.safe_load(POLICY), yaml.safe_load(pytorch_job("llama")), config_map]
    for document in documents:
        document["metadata"]["namespace"] = namespace
    submit.apply(documents, by="test", now=NOW)


def left() -> list[str]:
    return [row.namespace for model in (Job, Policy, Dependent) for row in model.objects.order_by("namespace")]


def test_what_is_in_it_goes_and_then_the_namespace():
    filled("speech")
    filled("vision")
    namespaces.terminate("vision", now=NOW)
    sweep.run(NOW + timedelta(seconds=30))
    assert left() == ["speech", "vision"] * 3, "the process that began it may be at it still"
    sweep.run(LATER)
    assert left() == ["speech"] * 3 and Namespace.objects.exists()
    sweep.run(LATER)
    assert not Namespace.objects.exists()


def test_one_that_began_before_the_clock_was_set_back_waits_no_hour():
    filled("vision")
    namespaces.terminate("vision", now=NOW + timedelta(hours=1))
    interrupted_deletions.resume(NOW)
    assert left() == []


def test_it_stays_until_its_last_job_is_gone():
    filled("vision")
    namespaces.terminate("vision", now=NOW)
    Job.objects.update(deleting_at=NOW)
    for _ in range(2):
        interrupted_deletions.resume(LATER)
    assert left() == ["vision"] and namespaces.terminating(["vision"]) == ["vision"]


def test_what_only_a_fleet_admin_may_delete_is_kept_with_its_namespace():
    filled("dlrover", network.TABLE)
    namespaces.terminate("dlrover", now=NOW)
    for _ in range(2):
        interrupted_deletions.resume(LATER)
    assert [str(row.name) for row in Dependent.objects.all()] == [network.TABLE]
    assert not Job.objects.exists() and not Namespace.objects.exists()
