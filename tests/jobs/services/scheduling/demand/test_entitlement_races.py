"""Leaves resolved again while others submit jobs, and label them anew, at the same moment."""

from contextlib import suppress

import pytest
import yaml
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from jobs.models import Job
from jobs.services.scheduling.demand import entitlements
from quotas.services import trees
from tests.quotas.core.builders import manifest, quota
from tests.support import books
from tests.support.between import after_each_look_at
from tests.support.books import GPU, team
from tests.support.world import pytorch_job

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'postgresql'", reason="on SQLite one transaction writes at a time"),
]
WHOLE = {"cpu": 10**5, "memory": "900000Gi", GPU: 1000, "kube-queue/max-jobs": 1000}


@pytest.fixture(autouse=True)
def stale():
    """One job that waits, resolved under a former tree."""
    books.a_cluster()
    children = team("a", namespaces=["default"]), team("b")
    trees.apply(manifest(quota("root", WHOLE, WHOLE, *children)), by="system", now=timezone.now())
    books.apply(pytorch_job("early", workers=1))
    of_a_former_tree("early")


def of_a_former_tree(name: str) -> None:
    Job.objects.filter(name=name).update(leaf="root/gone", tree_version=0)


def test_it_resolves_a_job_that_was_submitted_under_the_former_tree_meanwhile():
    def submit() -> None:
        books.apply(pytorch_job("late", workers=1))
        of_a_former_tree("late")

    with after_each_look_at("jobs_job", submit):
        entitlements.refit_stale()
    assert books.job("late").tree_version == 0, "nobody has resolved it yet"
    books.cycle()
    placed = dict(Job.objects.values_list("name", "state"))
    assert placed == {"early": Job.State.PLACED, "late": Job.State.PLACED}
    assert {job.leaf for job in Job.objects.all()} == {"root/a"}


def test_labels_that_change_meanwhile_are_what_counts_in_the_end():
    body = yaml.safe_load(pytorch_job("early", workers=1))
    body["metadata"]["labels"] = {"quota.scheduling.alibabacloud.com/name": "b"}

    def label() -> None:
        """Gives up where it would have to wait."""
        with suppress(OperationalError), transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = '100ms'")
            books.apply(yaml.safe_dump(body))

    with after_each_look_at("jobs_job", label):
        entitlements.refit_stale()
    job = books.job("early")
    assert job.leaf == ("root/b" if job.labels else "root/a")
