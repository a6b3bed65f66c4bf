"""What a preview of a tree costs: a number of queries that no number of jobs and leaves changes."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from quotas.services import previews, trees
from tests.support.many_jobs import give, many_leaves

pytestmark = pytest.mark.django_db


def queries(leaves: int, running: int, waiting: int) -> int:
    trees.apply(many_leaves(teams=4, leaves=leaves), by="system", now=timezone.now())
    give(teams=4, leaves=leaves, running=running, waiting=waiting)
    with CaptureQueriesContext(connection) as asked:
        made = previews.of_manifest(many_leaves(teams=4, leaves=leaves, lower=True), by="system", now=timezone.now())
    assert made.saves
    return len(asked)


@pytest.mark.parametrize(("leaves", "running", "waiting"), [(2, 32, 8), (20, 320, 80)])
def test_a_preview_reads_the_jobs_once_however_many_there_are_and_for_both_trees(leaves, running, waiting):
    assert queries(leaves, running, waiting) <= 14
