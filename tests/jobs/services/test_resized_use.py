"""The GPU-time of an attempt that was resized: each second counts with the size of that second."""

from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.core.scheduling.backfill_reservation import Runs
from jobs.models import Attempt, DeletedUse, Job
from jobs.services.lifecycle.accounting import deleted_use
from jobs.services.lifecycle.accounting import runs as runs_service
from jobs.services.scheduling.demand import use
from jobs.services.series import hours
from quotas.services import trees
from tests.jobs.services.resizing import cycle, elastic, resize, runs, size
from tests.quotas.core.builders import manifest, quota
from tests.support import books
from tests.support.quotas import PLENTY, gpus, leaf

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


@pytest.fixture
def placed():
    """A job of 4 GPUs that has run for 10 hours."""
    books.a_cluster("north", 8)
    tree = quota("root", PLENTY, PLENTY, leaf("a", **gpus(8, 8)), attributes={"fair-share": "OverTime"})
    trees.apply(manifest(tree), by="system", now=timezone.now())
    books.apply(elastic("llama", 4, queue="a"))
    runs("llama")
    began = timezone.now() - 10 * HOUR
    Attempt.objects.update(placed_at=began, started_at=began)
    return began


def gpu_hours(began) -> float:
    now = timezone.now()
    [share] = hours.read(hours.Owner.TEAM, began - HOUR, now, now, None)
    return share.time.total_ms / 3_600_000


def recent_use() -> float:
    """GPU-hours that count for shares over time."""
    counted = Runs()
    use.load(counted, timezone.now())
    return sum(counted.use_by_user(timezone.now().timestamp()).values()) / 3600


def test_what_it_used_before_it_shrank_stays_what_it_was(placed):
    resize("llama", 1)
    assert size("llama") == Attempt.objects.get().gpus == 1
    assert gpu_hours(placed) == pytest.approx(40, rel=0.001)


def test_what_it_used_before_it_grew_stays_what_it_was(placed):
    resize("llama", 8)
    cycle()
    assert size("llama") == 8
    assert gpu_hours(placed) == pytest.approx(40, rel=0.001)


def test_each_size_counts_for_its_time(placed):
    resize("llama", 1)
    [[until, before]] = Attempt.objects.get().sizes
    assert before == 4
    Attempt.objects.update(sizes=[[until - 3_600_000 * 4, 4]])
    assert gpu_hours(placed) == pytest.approx(6 * 4 + 4 * 1, rel=0.001)
    assert recent_use() == pytest.approx(28, rel=0.05)


def test_it_counts_for_shares_over_time_and_outlives_the_job(placed):
    resize("llama", 1)
    used = recent_use()
    assert used == pytest.approx(40, rel=0.05)
    deleted_use.keep(books.job("llama"), timezone.now())
    [run] = runs_service.as_stored(books.job("llama"), timezone.now())
    Attempt.objects.all().delete()
    assert DeletedUse.objects.get().sizes
    assert recent_use() == pytest.approx(used, rel=0.001)
    assert (run["gpus"], [gpus for _, gpus in run["sizes"]]) == (1, [4])


def test_an_attempt_that_ended_is_not_counted_by_a_later_size_of_its_job(placed):
    Attempt.objects.update(ended_at=timezone.now(), outcome="Moved")
    Job.objects.update(gpus=1)
    assert gpu_hours(placed) == pytest.approx(40, rel=0.001)
