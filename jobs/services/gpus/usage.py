"""Joins the readings of nodes' GPUs with the pods of the fleet's jobs, and answers by cluster, by job and over time.

An exporter's word for who has a GPU counts only where the fleet knows a pod of that name on that node. A reading that is older
than `storing.freshness` says nothing of now, and is left out.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet

from fleet.core import gpu_readings
from fleet.core.gpu_readings import Reading
from fleet.db import clock
from fleet.models import Cluster, GpuHour, GpuScrape, NodeReading, Pod
from fleet.services.gpus import storing
from jobs import snapshot
from jobs.models import Job

MINUTE = 60
STEPS = (1, 5, 15, 60)
"""Minutes of one value over time."""
MOST_VALUES = 20_000
MOST_GPUS = 64
"""Of one job, over time."""
Namespaces = Collection[str] | None
"""Those whose jobs may be named; None: all."""


@dataclass(frozen=True, slots=True)
class PodOfJob:
    job_uid: UUID
    namespace: str
    name: str
    role: str
    index: int
    started_at: datetime | None


@dataclass(frozen=True, slots=True)
class GpuUse:
    cluster: str
    node: str
    at: datetime
    reading: Reading
    pod: PodOfJob | None
    """None: no job of the fleet has it, as far as is known."""
    job: Job | None = None
    """None too where the reader may not know it."""


@dataclass(slots=True)
class NodeUse:
    node: str
    at: datetime
    gpus: list[GpuUse] = field(default_factory=list)


@dataclass(slots=True)
class JobUse:
    job: Job
    gpus: int = 0
    """Of which a reading is known."""
    measured: int = 0
    """Of which the utilisation is known."""
    total: float = 0.0
    memory_used: float = 0.0
    power: float = 0.0

    @property
    def utilization(self) -> float | None:
        return self.total / self.measured if self.measured else None

    def add(self, reading: Reading) -> None:
        self.gpus += 1
        self.memory_used += reading.memory_used or 0
        self.power += reading.power or 0
        if reading.utilization is not None:
            self.measured += 1
            self.total += reading.utilization


@dataclass(frozen=True, slots=True)
class ClusterUse:
    cluster: str
    measured: int
    utilization: float | None
    read_at: datetime | None
    exporters: int
    answered: int
    message: str


@dataclass(frozen=True, slots=True)
class Line:
    """One GPU over time."""

    use: GpuUse
    values: list[float | None]


@dataclass(frozen=True, slots=True)
class History:
    start: int
    """Of the first value, in seconds since the epoch."""
    step: int
    """Seconds."""
    lines: list[Line]


def fresh(now: datetime) -> QuerySet[NodeReading]:
    """Nor are those of before the clock was set back: their nodes may be gone by now."""
    return NodeReading.objects.filter(at__range=(now - storing.freshness(), now + clock.STEP))


def of_clusters(now: datetime) -> list[ClusterUse]:
    """Every cluster, with what is measured there and how its exporters were read last."""
    sums: dict[int, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
    for cluster, measured, total in fresh(now).values_list("cluster", "measured", "utilization"):
        sums[cluster] = (sums[cluster][0] + measured, sums[cluster][1] + total)
    scrapes = {row.cluster_id: row for row in GpuScrape.objects.all()}
    uses = []
    for pk, name in Cluster.objects.order_by("name").values_list("pk", "name"):
        measured, total = sums[pk]
        row = scrapes.get(pk, GpuScrape())
        mean = total / measured if measured else None
        uses.append(ClusterUse(name, measured, mean, row.read_at, row.exporters, row.answered, row.message))
    return uses


def of_cluster(cluster: Cluster, namespaces: Namespaces, now: datetime) -> list[NodeUse]:
    """Its nodes by name."""
    nodes: dict[str, NodeUse] = {}
    for use in with_jobs(join(fresh(now).filter(cluster=cluster).order_by("node")), namespaces):
        nodes.setdefault(use.node, NodeUse(use.node, use.at)).gpus.append(use)
    return list(nodes.values())


def of_jobs(namespaces: Namespaces, now: datetime) -> list[JobUse]:
    """The jobs that have GPUs of which a reading is known, by namespace and name."""
    uses: dict[UUID, JobUse] = {}
    for use in with_jobs(join(of_namespaces(fresh(now), namespaces), namespaces), namespaces):
        if use.job is not None:
            uses.setdefault(use.job.uid, JobUse(use.job)).add(use.reading)
    return sorted(uses.values(), key=lambda use: (use.job.namespace, use.job.name))


def of_job(job: Job, now: datetime) -> list[GpuUse]:
    """The GPUs of its pods, by role, index and number."""
    pods = Pod.objects.filter(job_uid=job.uid, phase__in=snapshot.LIVE).exclude(node="")
    places = set(pods.values_list("cluster", "node"))
    rows = fresh(now).filter(cluster__in={pk for pk, _ in places}, node__in={node for _, node in places})
    uses = [use for use in join(rows) if use.pod is not None and use.pod.job_uid == job.uid]
    return sorted(uses, key=lambda use: (use.pod.role, use.pod.index, use.node) if use.pod else ("", 0, ""))


def of_namespaces(rows: QuerySet[NodeReading], namespaces: Namespaces) -> QuerySet[NodeReading]:
    """Those of nodes on which pods of these namespaces are."""
    if namespaces is None:
        return rows
    pods = Pod.objects.filter(namespace__in=namespaces, phase__in=snapshot.LIVE).order_by()
    return rows.filter(Exists(pods.filter(cluster=OuterRef("cluster"), node=OuterRef("node"))))


def join(rows: QuerySet[NodeReading], namespaces: Namespaces = None) -> list[GpuUse]:
    """Every GPU of the nodes, with the pod of a job of these namespaces that has it; in two queries."""
    readings = list(rows.select_related("cluster").defer("cluster__access"))
    pods = _pods(readings, namespaces)
    uses = []
    for row in readings:
        for reading in gpu_readings.loaded(row.gpus):
            pod = pods.get((row.cluster_id, row.node, *reading.owner)) if reading.pod else None
            uses.append(GpuUse(row.cluster.name, row.node, row.at, reading, pod))
    return uses


def _pods(readings: Iterable[NodeReading], namespaces: Namespaces) -> dict[tuple[int, str, str, str], PodOfJob]:
    clusters, nodes = {row.cluster_id for row in readings}, {row.node for row in readings}
    rows = Pod.objects.filter(cluster__in=clusters, phase__in=snapshot.LIVE).exclude(node="").order_by()
    if namespaces is not None:
        rows = rows.filter(namespace__in=namespaces)
    if len(nodes) < 100:
        rows = rows.filter(node__in=nodes)
    fields = ("cluster_id", "node", "namespace", "name", "job_uid", "role", "index", "started_at")
    return {
        (cluster, node, namespace, name): PodOfJob(uid, namespace, name, role, index, started)
        for cluster, node, namespace, name, uid, role, index, started in rows.values_list(*fields)
    }


def with_jobs(uses: Iterable[GpuUse], namespaces: Namespaces) -> list[GpuUse]:
    """The same, each with its job where the reader may know it; in one query."""
    rows = list(uses)
    uids = {use.pod.job_uid for use in rows if use.pod is not None}
    jobs = Job.objects.filter(uid__in=uids).only("uid", "kind", "namespace", "name", "state", "leaf", "gpus")
    known = {job.uid: job for job in jobs if namespaces is None or job.namespace in namespaces}
    return [
        GpuUse(use.cluster, use.node, use.at, use.reading, use.pod, known.get(use.pod.job_uid) if use.pod else None)
        for use in rows
    ]


def history(uses: list[GpuUse], now: datetime, span: timedelta) -> History:
    """The utilisation of GPUs since their pods started, at most for ``span``; of the first `MOST_GPUS` of them."""
    shown = [use for use in uses if use.pod is not None][:MOST_GPUS]
    end = int(now.timestamp()) // MINUTE + 1
    starts = [int(use.pod.started_at.timestamp()) // MINUTE for use in shown if use.pod and use.pod.started_at]
    begin = max(end - int(span.total_seconds()) // MINUTE, min(starts, default=end - 1))
    step = next((each for each in STEPS if (end - begin) // each * len(shown) <= MOST_VALUES), STEPS[-1])
    begin = begin // step * step
    minutes = _minutes(shown, begin * MINUTE)
    lines = []
    for use in shown:
        known = minutes.get((use.cluster, use.node, use.reading.gpu), {})
        began = _started(use)
        known = {minute: value for minute, value in known.items() if minute >= began}
        lines.append(Line(use, [_mean(known, at, step) for at in range(begin, end, step)]))
    return History(begin * MINUTE, step * MINUTE, lines)


def _started(use: GpuUse) -> int:
    """The first whole minute of the pod; what was before is not its own."""
    started = use.pod.started_at if use.pod else None
    return -(-int(started.timestamp()) // MINUTE) if started else 0


def _mean(values: dict[int, float], begin: int, step: int) -> float | None:
    known = [values[minute] for minute in range(begin, begin + step) if minute in values]
    return round(sum(known) / len(known), 1) if known else None


def _minutes(uses: list[GpuUse], begin: int) -> dict[tuple[str, str, str], dict[int, float]]:
    """Percent by minute since the epoch, of each GPU."""
    wanted: dict[tuple[str, str], set[str]] = defaultdict(set)
    for use in uses:
        wanted[use.cluster, use.node].add(use.reading.gpu)
    rows = GpuHour.objects.filter(
        cluster__name__in={cluster for cluster, _ in wanted},
        node__in={node for _, node in wanted},
        hour__gte=begin // storing.HOUR * storing.HOUR,
    )
    minutes: dict[tuple[str, str, str], dict[int, float]] = defaultdict(dict)
    for cluster, node, hour, gpus in rows.values_list("cluster__name", "node", "hour", "minutes"):
        for gpu in wanted.get((cluster, node), set()) & gpus.keys():
            values = gpus[gpu].items()
            minutes[cluster, node, gpu].update((hour // MINUTE + int(minute), value) for minute, value in values)
    return minutes
