"""Runs of jobs as rows, and a recorder whose clock is moved by hand."""

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime

from fleet.models import Cluster
from jobs.core.series.catalogue import Dimension, Metric
from jobs.events import announce_jobs
from jobs.models import Attempt, Job
from jobs.services.series import reading, recording
from tests.support.books import GPU

EPOCH = 1_900_000_800
"""The beginning of an hour."""
_NAMES = itertools.count()


def moment(s: float) -> datetime:
    return datetime.fromtimestamp(EPOCH + s, UTC)


def a_run(
    cluster: Cluster,
    gpus: int,
    placed: float,
    started: float | None = None,
    ended: float | None = None,
    *,
    leaf: str = "",
    namespace: str = "vision",
    outcome: str = "",
    sizes: Sequence[tuple[float, int]] = (),
) -> Job:
    """``sizes``: until when it had how many GPUs before it had ``gpus``."""
    at = moment(placed)
    job = Job.objects.create(
        kind="Job", api_version="batch/v1", namespace=namespace, name=f"run-{next(_NAMES)}", manifest={}, roles=[],
        total={GPU: gpus}, gpus=gpus, leaf=leaf, created_at=at, queued_at=at, cluster=cluster, attempt=1, state="Running",
    )  # fmt: skip
    Attempt.objects.create(
        job=job, number=1, cluster_name=cluster.name, placed_at=at, outcome=outcome,
        sizes=[[round(moment(until).timestamp() * 1000), before] for until, before in sizes] or None,
        started_at=None if started is None else moment(started), ended_at=None if ended is None else moment(ended),
    )  # fmt: skip
    announce_jobs([job], at)
    return job


def record(*times: float, recorder: recording.Recorder | None = None) -> None:
    recorder = recorder or recording.Recorder()
    for each in times:
        recorder.run(moment(each))


def values(
    metric: Metric, begin: float, end: float, step: int = 10, by: Dimension = Dimension.FLEET, name: str = ""
) -> list[float | None]:
    """Read as a caller would, once the last bucket is recorded."""
    query = reading.ask(metric, by, name, moment(begin), moment(end), str(step))
    series = reading.read(query, None, moment(end + recording.LAG_S)).series
    return series[0].values if series else []
