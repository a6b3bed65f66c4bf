"""Values over time of jobs that are submitted, placed, run and end through the real services."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connections
from django.utils import timezone

from jobs.core.series.catalogue import Dimension, Metric
from jobs.models import SeriesPoint
from jobs.services.series import reading, recording
from tests.jobs.services.series.builders import a_run, moment
from tests.support import books
from tests.support.quotas import apply_tree, gpus, leaf
from tests.support.world import pytorch_job


def last(metric: Metric, by: Dimension, name: str, at) -> float | None:
    query = reading.ask(metric, by, name, at - timedelta(seconds=20), at - timedelta(seconds=10), "10")
    series = reading.read(query, None, at).series
    return series[0].values[0] if series else None


@pytest.mark.django_db
def test_it_follows_a_job_that_borrows_from_submission_to_its_end():
    apply_tree(leaf("speech", "speech", **gpus(6, 8)), leaf("vision", "default", **gpus(2, 8)), total={**_whole(8)})
    books.a_cluster("north", gpus=8)
    recorder, now = recording.Recorder(), timezone.now()
    recorder.run(now)
    books.apply(pytorch_job("train", workers=3))
    recorder.run(soon := now + timedelta(seconds=20))
    assert last(Metric.WAITING, Dimension.QUEUE, "root/vision", soon) == 1

    assert books.cycle()
    recorder.run(soon := now + timedelta(seconds=60))
    assert last(Metric.HELD, Dimension.QUEUE, "root", soon) == 4
    assert last(Metric.FREE, Dimension.FLEET, "", soon) == 4
    assert last(Metric.CHARGED, Dimension.QUEUE, "root/vision", soon) == 4
    assert last(Metric.BORROWED, Dimension.QUEUE, "root/vision", soon) == 2
    assert last(Metric.LENT, Dimension.QUEUE, "root/speech", soon) == 2
    assert last(Metric.WAITING, Dimension.QUEUE, "root/vision", soon) == 0

    books.sent()
    books.report("train", "Running", now=now + timedelta(seconds=70))
    recorder.run(soon := now + timedelta(seconds=120))
    assert last(Metric.USED, Dimension.TEAM, "default", soon) == 4
    assert last(Metric.HELD, Dimension.CLUSTER, "north", soon) == 0

    books.report("train", "Succeeded", now=now + timedelta(seconds=130))
    recorder.run(soon := now + timedelta(seconds=180))
    assert last(Metric.USED, Dimension.CLUSTER, "north", soon) == 0
    assert last(Metric.CHARGED, Dimension.QUEUE, "root/vision", soon) == 0


def _whole(count: int) -> dict[str, object]:
    return {"cpu": 10**5, "memory": "400000Gi", books.GPU: count, "pods": 1000}


@pytest.mark.django_db(transaction=True)
def test_two_workers_at_once_record_every_bucket_once():
    """The lease is one guard and the condition on the progress the other: here the passes are made without the lease."""
    north = books.a_cluster("north")
    recording.Recorder().run(moment(20))
    a_run(north, 4, 30, 30)
    together = threading.Barrier(2)

    def work() -> None:
        try:
            together.wait(60)
            recording.Recorder()._record(moment(100).timestamp(), 7)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as threads:
        for each in [threads.submit(work) for _ in range(2)]:
            each.result(60)
    rows = SeriesPoint.objects.filter(step=10, series__metric="used", series__dimension="fleet")
    assert list(rows.values_list("at", "value")) == [(int(moment(30).timestamp()), 4)]
