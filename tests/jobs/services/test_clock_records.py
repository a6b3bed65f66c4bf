"""Records of what was used and what happened are kept for their time: a clock that is years ahead for a while deletes none."""

import uuid
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from fleet.services.operations.clock_steps import StepDetector
from jobs.core.series.catalogue import HOUR, Dimension, Metric, floor
from jobs.models import DeletedJob, DeletedUse, Incident, Series, SeriesPoint, UsageSpan
from jobs.services.failover import incidents
from jobs.services.follow import sweep
from jobs.services.lifecycle.accounting import deleted_use, usage_spans
from jobs.services.series import points

pytestmark = pytest.mark.django_db
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
YEARS = 1100 * DAY
Forget = Callable[[datetime], object]


def an_incident(at: datetime) -> None:
    times = dict.fromkeys(("began_at", "declared_at", "last_at", "over_at"), at)
    Incident.objects.create(kind="ClusterLost", subject="north", cluster_name="north", **times)


def a_deleted_job(at: datetime) -> None:
    DeletedJob.objects.create(uid=uuid.uuid4(), at=at)


def use_of_a_deleted_job(at: datetime) -> None:
    DeletedUse.objects.create(job=1, number=1, leaf="root/a", gpus=8, placed_at=at - DAY, ended_at=at)


def a_span(at: datetime) -> None:
    UsageSpan.objects.create(
        job_uid=uuid.uuid4(), number=1, kind="running", begin=at - DAY, end=at, gpus=8, namespace="team"
    )


def two_points(at: datetime) -> None:
    series = Series.objects.create(metric=Metric.USED, dimension=Dimension.FLEET, name="")
    for hours in (2, 1):
        SeriesPoint.objects.create(series=series, step=HOUR, at=floor(at.timestamp(), HOUR) - hours * HOUR, value=hours)


RECORDS = {
    "incident": (an_incident, Incident, incidents._forget),
    "deleted job": (a_deleted_job, DeletedJob, sweep._forget_deleted),
    "use of a deleted job": (use_of_a_deleted_job, DeletedUse, deleted_use.forget),
    "span": (a_span, UsageSpan, usage_spans.settle),
    "series": (two_points, SeriesPoint, points.forget),
}


@pytest.mark.parametrize(("record", "model", "forget"), RECORDS.values(), ids=RECORDS)
def test_it_is_kept_while_the_clock_is_years_ahead_and_forgotten_when_they_have_passed(record, model, forget):
    begun, detector = timezone.now(), StepDetector()
    record(begun - SECOND)
    kept = model.objects.count()
    detector.look(begun, 0.0)

    forget(begun + 30 * SECOND + YEARS)
    assert model.objects.count() == kept, "a step may be there that is not noted yet"
    detector.look(begun + 30 * SECOND + YEARS, 30.0)
    forget(begun + 30 * SECOND + YEARS)
    assert model.objects.count() == kept
    detector.look(begun + 60 * SECOND, 60.0)
    forget(begun + 60 * SECOND)
    assert model.objects.count() == kept

    StepDetector().look(begun + YEARS, 0.0)  # Convoy was down for so long
    forget(begun + YEARS)
    assert model.objects.count() < kept
