"""The law of values over time: whenever they were recorded, they equal a count of the attempts second by second."""

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from fleet.models import Cluster
from jobs.core.series.catalogue import Dimension, Metric
from jobs.core.series.hours import GpuTime
from jobs.models import Attempt
from jobs.services.series import hours, recording
from tests.jobs.services.series.builders import EPOCH, a_run, moment, record, values
from tests.support.books import a_cluster

END = 900
STEPS = (10, 60, 900)
_run = st.tuples(
    st.integers(1, 8), st.integers(30, END), st.integers(0, 200), st.integers(0, 400),
    st.sampled_from([None, "started", "ended"]), st.sampled_from(["root/a", "root/a/b", "root/c", ""]),
    st.sampled_from(["vision", "speech"]), st.sampled_from(["north", "south"]),
    st.lists(st.tuples(st.integers(0, 600), st.integers(0, 8)), max_size=2).map(sorted),
)  # fmt: skip


def _seconds(metric: Metric, attempt: Attempt) -> tuple[float, float]:
    """Of one attempt, from when until when it counts; with ``inf`` where it goes on."""
    at = [None if each is None else each.timestamp() - EPOCH for each in (attempt.started_at, attempt.ended_at)]
    ended = float("inf") if at[1] is None else at[1]
    started = ended if at[0] is None else at[0]
    return (attempt.placed_at.timestamp() - EPOCH, started) if metric is Metric.HELD else (started, ended)


def counted(metric: Metric, attempts: list[Attempt], second: int) -> float:
    """GPUs in one second, or what happened in it."""
    if metric in (Metric.USED, Metric.HELD):
        spans = [(_seconds(metric, each), each) for each in attempts]
        return sum(_size(attempt, second) for (since, until), attempt in spans if since <= second < until)
    moments = [each.started_at if metric is Metric.STARTS else each.ended_at for each in attempts]
    return sum(1 for at in moments if at is not None and at.timestamp() - EPOCH == second)


def _size(attempt: Attempt, second: int) -> int:
    """The GPUs that the attempt had in one second."""
    before = [gpus for until, gpus in attempt.sizes or () if second < until / 1000 - EPOCH]
    return before[0] if before else attempt.job.gpus


def of(dimension: Dimension, name: str, attempt: Attempt) -> bool:
    match dimension:
        case Dimension.CLUSTER:
            return attempt.cluster_name == name
        case Dimension.TEAM:
            return attempt.job.namespace == name
        case Dimension.QUEUE:
            return f"{attempt.job.leaf}/".startswith(f"{name}/")
    return True


class Law(TestCase):
    @given(
        runs=st.lists(_run, max_size=6),
        looks=st.lists(st.integers(40, END), max_size=12),
        is_one_process=st.booleans(),
    )
    def test_series_equal_a_recount_of_attempts(self, runs, looks, is_one_process):
        places = {name: a_cluster(name) for name in ("north", "south")}
        record(20)
        recorder = recording.Recorder() if is_one_process else None
        events = [(at, None) for at in looks] + [(placed, run) for run in runs for placed in [run[1]]]
        for at, run in sorted(events, key=lambda each: each[0]):
            if run is None:
                record(at, recorder=recorder)
            else:
                self._make(places, run)
        record(END + 200, recorder=recorder)
        self._compare()
        self._compare_hours()

    def _make(self, places: dict[str, Cluster], run: tuple) -> None:
        gpus, placed, start, length, state, leaf, namespace, cluster, resizes = run
        # What is not to be seen yet when a pass looks is not there: here all of a run is there when it is placed, and what is
        # later than a pass is counted by a later one.
        started = None if state is None else placed + start
        ended = None if state != "ended" else placed + start + length
        sizes = [(placed + after, before) for after, before in resizes]
        a_run(places[cluster], gpus, placed, started, ended, leaf=leaf, namespace=namespace, sizes=sizes)

    def _compare_hours(self) -> None:
        """GPU-hours are those of the attempts, second by second."""
        attempts = list(Attempt.objects.select_related("job"))
        span = moment(0), moment(END), moment(END + 200), None
        shares = {share.name: share.time for share in hours.read(hours.Owner.TEAM, *span)}
        for team in ("vision", "speech"):
            own = [each for each in attempts if each.job.namespace == team]
            expected = [
                1000 * sum(counted(metric, own, second) for second in range(END))
                for metric in (Metric.USED, Metric.HELD)
            ]
            time = shares.get(team, GpuTime())
            assert [time.used_ms, time.held_ms] == expected, team

    def _compare(self) -> None:
        attempts = list(Attempt.objects.select_related("job"))
        asked = [
            (Dimension.FLEET, ""), (Dimension.CLUSTER, "south"), (Dimension.TEAM, "vision"), (Dimension.QUEUE, "root/a"),
            (Dimension.QUEUE, "root/a/b"),
        ]  # fmt: skip
        for dimension, name in asked:
            own = [each for each in attempts if of(dimension, name, each)]
            for metric in (Metric.USED, Metric.HELD, Metric.STARTS, Metric.ENDS):
                seconds = [counted(metric, own, second) for second in range(0, END)]
                for step in (10, 60):
                    mean = 1 if metric in (Metric.STARTS, Metric.ENDS) else step
                    expected = [sum(seconds[at : at + step]) / mean for at in range(0, END, step)]
                    series = values(metric, 0, END, step, dimension, name) or [0.0] * len(expected)
                    assert [round(each, 4) for each in series] == [round(each, 4) for each in expected], (
                        metric, dimension, name, step,
                    )  # fmt: skip
