"""A time and a number of seconds of the same row are added by the database."""

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.db.durations import later_by
from jobs.models import Job
from tests.support import books
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db
NOW = timezone.now()
TEN_YEARS_S = 10 * 365 * 86_400


@pytest.mark.parametrize(
    ("since", "limit", "is_due"),
    [(60.0, 60, True), (59.999999, 60, False), (0.0, 1, False), (10.0**6, TEN_YEARS_S, False), (0.0, None, False)],
)
def test_a_row_is_due_when_its_own_seconds_are_over(since, limit, is_due):
    books.apply(pytorch_job("llama"))
    Job.objects.update(queued_at=NOW - timedelta(seconds=since), max_wait_s=limit)
    due = Job.objects.alias(until=later_by("queued_at", "max_wait_s")).filter(until__lte=NOW)
    assert due.exists() == is_due
