"""Values over time are those of the runs of jobs, and are known to be unknown where nothing recorded them."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.changes import journal
from fleet.models import Cluster
from jobs.core.series.catalogue import Dimension, Metric
from jobs.models import Attempt, DeletedJob, Job, Series, SeriesPoint, SeriesProgress
from jobs.services.failover import failover
from jobs.services.series import recording
from tests.jobs.services.series.builders import a_run, moment, record, values
from tests.support.books import GPU, a_cluster

pytestmark = pytest.mark.django_db


@pytest.fixture
def north(db) -> Cluster:
    return a_cluster("north", gpus=8)


def test_it_counts_gpus_of_runs_for_the_part_of_a_bucket_that_they_ran(north):
    record(20)
    a_run(north, 4, 31, 33, 55)
    record(40, 50, 60, 70, 80)
    assert values(Metric.HELD, 30, 70) == [0.8, 0, 0, 0]
    assert values(Metric.USED, 30, 70) == [2.8, 4, 2, 0]
    assert values(Metric.USED, 30, 70, by=Dimension.CLUSTER, name="north") == [2.8, 4, 2, 0]
    assert values(Metric.USED, 30, 70, by=Dimension.TEAM, name="vision") == [2.8, 4, 2, 0]
    assert values(Metric.STARTS, 30, 70) == [1, 0, 0, 0]
    assert values(Metric.ENDS, 30, 70) == [0, 0, 1, 0]


def test_it_counts_a_queue_with_the_queues_above_it(north):
    record(20)
    a_run(north, 4, 30, 30, leaf="root/llm/a")
    a_run(north, 2, 30, 30, leaf="root/llm/b")
    record(60)
    assert values(Metric.USED, 30, 50, by=Dimension.QUEUE, name="root/llm") == [6, 6]
    assert values(Metric.USED, 30, 50, by=Dimension.QUEUE, name="root/llm/b") == [2, 2]


def test_it_counts_a_failover_where_a_job_is_placed_after_its_cluster_was_lost(north):
    record(20)
    job = a_run(north, 4, 30, 31, 42, outcome="Lost")
    Attempt.objects.create(job=job, number=2, cluster_name="south", placed_at=moment(45))
    a_run(north, 1, 30, 31, 42, outcome="Reclaimed")
    record(70)
    assert values(Metric.FAILOVERS, 30, 60) == [0, 1, 0]
    assert values(Metric.FAILOVERS, 30, 60, by=Dimension.CLUSTER, name="south") == [0, 1, 0]
    assert values(Metric.PREEMPTIONS, 30, 60) == [0, 1, 0]


def test_it_samples_capacity_only_where_somebody_can_use_it(north):
    a_cluster("south", gpus=4)
    north.nodes.update(requested={GPU: 3}, labels={"nvidia.com/gpu.product": "A100"})
    record(20, 30)
    Cluster.objects.filter(name="south").update(state=Cluster.State.NOT_READY)
    record(120)
    assert values(Metric.CAPACITY, 10, 20) == [12]
    assert values(Metric.FREE, 10, 20) == [9]
    assert values(Metric.CAPACITY, 100, 110) == [8]
    assert values(Metric.FREE, 100, 110, by=Dimension.CLUSTER, name="south") == [0]
    assert values(Metric.USED, 100, 110, by=Dimension.MODEL, name="A100") == [3]


def test_what_cannot_be_reached_counts_apart_and_the_parts_are_the_whole(north):
    a_cluster("south", gpus=4)
    north.nodes.update(requested={GPU: 3})
    record(20, 30)
    Cluster.objects.filter(name="south").update(state=Cluster.State.UNKNOWN)
    record(120)
    Cluster.objects.filter(name="south").update(state=Cluster.State.READY)
    record(220)
    for metric, before, without, after in (
        (Metric.CAPACITY, 12, 8, 12), (Metric.REQUESTED, 3, 3, 3), (Metric.FREE, 9, 5, 9), (Metric.UNREACHABLE, 0, 4, 0),
    ):  # fmt: skip
        seen = [values(metric, at, at + 10) for at in (10, 100, 200)]
        assert seen == [[before], [without], [after]], metric
    assert values(Metric.UNREACHABLE, 100, 110, by=Dimension.CLUSTER, name="south") == [4]
    assert values(Metric.UNREACHABLE, 100, 110, by=Dimension.CLUSTER, name="north") == [0]


def test_a_cluster_whose_nodes_are_all_cordoned_has_no_capacity_and_is_not_out_of_reach(north):
    record(20, 30)
    north.nodes.update(unschedulable=True)
    record(120)
    for metric in (Metric.CAPACITY, Metric.FREE, Metric.UNREACHABLE):
        assert values(metric, 100, 110, by=Dimension.CLUSTER, name="north") == [0], metric


def test_the_mean_of_a_minute_in_which_a_cluster_is_lost_keeps_the_parts_the_whole(north):
    record(20, 60)
    Cluster.objects.filter(name="north").update(state=Cluster.State.UNKNOWN)
    record(*range(110, 300, 10))
    for by, name in ((Dimension.FLEET, ""), (Dimension.CLUSTER, "north")):
        capacity, away = (values(each, 60, 120, 60, by, name)[0] for each in (Metric.CAPACITY, Metric.UNREACHABLE))
        assert 0 < away < 8 and capacity + away == pytest.approx(8), (capacity, away)


def test_it_repeats_no_value_that_has_not_changed(north):
    a_run(north, 4, 5, 5)
    recorder = recording.Recorder()
    record(20, 30, 40, recorder=recorder)
    stored = SeriesPoint.objects.filter(step=10).count()
    record(*range(50, 590, 10), recorder=recorder)
    assert SeriesPoint.objects.filter(step=10).count() == stored
    assert values(Metric.USED, 20, 540) == [4] * 52


def test_it_rests_while_nothing_changes(north):
    a_run(north, 4, 5, 5)
    recorder = recording.Recorder()
    record(20, 30, 40, 50, 60, recorder=recorder)
    with CaptureQueriesContext(connection) as asked:
        assert not recorder.run(moment(70))
    assert len(asked) == 2, [each["sql"] for each in asked]


def test_it_notices_within_a_minute_what_changes_without_the_journal(north):
    recorder = recording.Recorder()
    record(20, 30, 40, 50, recorder=recorder)
    north.nodes.update(allocatable={GPU: 16})
    record(*range(60, 140, 10), recorder=recorder)
    assert values(Metric.CAPACITY, 110, 120) == [16]


def test_it_recounts_the_time_after_a_process_died_and_marks_what_cannot_be(north):
    record(20)
    a_run(north, 4, 1000, 1000, 2000)
    record(7230)
    assert values(Metric.USED, 980, 1020) == [0, 0, 4, 4]
    assert values(Metric.USED, 1980, 2010) == [4, 4, 0]
    assert values(Metric.CAPACITY, 0, 30) == [8, None, None]
    assert values(Metric.CAPACITY, 3000, 3010) == [None]
    assert values(Metric.CAPACITY, 7210, 7220) == [8]


def test_a_pass_that_is_late_writes_nothing(north):
    record(20, 30)
    late, progress = recording.Recorder(), SeriesProgress.objects.get()
    record(60)
    stored = SeriesPoint.objects.count()
    assert not late._pass(progress, progress.fine + 10, journal.tip(), moment(60).timestamp())
    assert SeriesPoint.objects.count() == stored


def test_it_counts_the_runs_of_a_job_that_was_deleted_before_they_were_recorded(north):
    record(20)
    job = a_run(north, 4, 30, 30, 45)
    Job.objects.update(deleting_at=moment(45))
    job.refresh_from_db()
    assert failover.finish_deletion(job, moment(46)) and not Attempt.objects.exists()
    record(80)
    assert values(Metric.USED, 30, 60) == [4, 2, 0]
    assert DeletedJob.objects.get().runs[0]["namespace"] == "vision"


def test_it_makes_minutes_and_hours_of_it(north):
    record(20)
    a_run(north, 4, 90, 90, 180)
    a_run(north, 4, 95, 95, 180)
    for at in range(30, 3700, 60):
        record(at)
    record(7300)
    assert values(Metric.USED, 60, 240, 60) == [round((4 * 30 + 4 * 25) / 60, 6), 8, 0]
    assert values(Metric.STARTS, 60, 240, 60) == [2, 0, 0]
    assert values(Metric.USED, 0, 7200, 3600) == [round((4 * 90 + 4 * 85) / 3600, 6), 0]
    a_run(north, 1, 7400, 7400)
    record(*range(7410, 14500, 600))
    assert values(Metric.USED, 7200, 10800, 3600) == [round(3400 / 3600, 6)]


def test_it_writes_in_a_number_of_queries_that_does_not_grow(north, settings):
    record(20)
    for i in range(30):
        a_run(north, 1, 25, 25 + i / 10, leaf=f"root/team-{i}", namespace=f"team-{i}")
    recorder = recording.Recorder()
    with CaptureQueriesContext(connection) as asked:
        assert recorder.run(moment(40))
    assert len(asked) <= 30, [each["sql"][:100] for each in asked]
    assert values(Metric.STARTS, 20, 30, by=Dimension.TEAM, name="team-7") == [1]


def test_it_forgets_what_is_older_than_its_retention(north):
    record(20)
    a_run(north, 4, 30, 30, 100)
    a_run(north, 2, 200, 200)
    for at in range(60, 4 * 3600, 300):
        record(at)
    begun = moment(0).timestamp()
    kept = SeriesPoint.objects.filter(step=10, at__lt=begun + 3600)
    assert ("used", 2.0) in kept.values_list("series__metric", "value")
    assert not kept.filter(series__metric="held").exists()
    assert kept.values_list("series").distinct().count() == kept.count(), "one of each series"
    assert values(Metric.USED, 3 * 3600, 3 * 3600 + 20) == [2, 2]


def test_it_keeps_no_more_series_than_it_may(north, settings):
    settings.CONVOY_SERIES = type(settings.CONVOY_SERIES)(most=100)
    record(20)
    for i in range(60):
        a_run(north, 1, 30, 30, namespace=f"team-{i}")
    record(60)
    assert Series.objects.count() == 100


def test_it_goes_on_after_a_clock_that_was_years_ahead(north):
    record(20)
    record(10 * 365 * 86400)
    a_run(north, 4, 40, 40)
    record(60, 70)
    assert values(Metric.USED, 50, 60) == [4]
