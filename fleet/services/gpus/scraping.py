"""Reads the dcgm-exporters of members through their API servers: each with one request in an interval, apart from all tasks.

A member is due when `GpuScrape.due_at` has passed. A worker claims it by moving that time and reads it in a thread of its own,
in bounded time: however slow an exporter is, it holds up no task. What an exporter does is never counted against its member.
Exporters are pods with the labels of NVIDIA's charts in namespaces of the operator; each is believed of its own node only.
"""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q
from structlog import get_logger

from fleet.core import gpu_readings
from fleet.core.gpu_readings import Reading
from fleet.core.members.health import State
from fleet.kube.resources import PODS
from fleet.member.client import MemberClient, Object
from fleet.member.errors import MemberDenied, MemberError
from fleet.models import Cluster, GpuScrape, NodeReading
from fleet.services.gpus import storing
from fleet.services.members import member_clients

log = get_logger(__name__)

PORT = 9400
SELECTORS = (
    "app in (nvidia-dcgm-exporter,dcgm-exporter)",
    "app.kubernetes.io/name in (dcgm-exporter,gke-managed-dcgm-exporter)",
)
"""Of NVIDIA's GPU Operator, of the chart of dcgm-exporter, and of a provider that manages one."""
MOST_BYTES = 2**20
"""Of one exporter's answer."""
MOST_EXPORTERS = 5000
_ANSWER_S = 5.0
_BUDGET_S = 40.0
"""For all exporters of a member; those that are left are read first the next time."""
_CLAIM = timedelta(seconds=120)
"""Longer than a member takes."""
_NONE = timedelta(minutes=10)
"""After which a member without exporters is looked at again."""
_MEMBERS_AT_ONCE, _EXPORTERS_AT_ONCE = 4, 4
_SLOTS = threading.BoundedSemaphore(_MEMBERS_AT_ONCE)
_WRITING = threading.Lock()
"""One result is written at a time, so that all threads together need one database connection."""
_RIGHTS = "the fleet's account needs the verb get on pods/proxy in namespace"


@dataclass(frozen=True, slots=True)
class Exporter:
    namespace: str
    name: str
    node: str

    @property
    def path(self) -> str:
        return f"{PODS.path(self.namespace, f'{self.name}:{PORT}', 'proxy')}/metrics"


@dataclass(slots=True)
class Outcome:
    """What the exporters of one member answered."""

    exporters: int = 0
    readings: dict[str, list[Reading]] = field(default_factory=dict)
    message: str = ""
    is_denied: bool = False
    is_away: bool = False
    """Whether its exporters could not be listed now: it is asked again after the usual interval."""


def start(now: datetime) -> list[threading.Thread]:
    """Begins to read members that are due, as many as there are free threads; does not wait for their answers."""
    if not settings.CONVOY_GPUS.interval_s:
        return []
    threads: list[threading.Thread] = []
    due = Cluster.objects.filter(_due(now), state=State.READY, failing_since=None).select_related("gpu_scrape")
    for row in due.order_by("gpu_scrape__due_at", "pk")[: 2 * _MEMBERS_AT_ONCE]:
        if not _SLOTS.acquire(blocking=False):
            break
        if not _claim(row, now):
            _SLOTS.release()
            continue
        threads.append(threading.Thread(target=_read, args=(row, now), name=f"gpus {row.name}", daemon=True))
        threads[-1].start()
    return threads


def _due(now: datetime) -> Q:
    """A time farther away than any that is set is of a clock that was wrong."""
    too_far = now + _interval() + _NONE + _CLAIM
    return Q(gpu_scrape=None) | Q(gpu_scrape__due_at__lte=now) | Q(gpu_scrape__due_at__gt=too_far)


def _interval() -> timedelta:
    return timedelta(seconds=settings.CONVOY_GPUS.interval_s)


def _claim(row: Cluster, now: datetime) -> bool:
    """False when another worker was faster."""
    known: GpuScrape | None = getattr(row, "gpu_scrape", None)
    if known is None:
        return GpuScrape.objects.get_or_create(cluster=row, defaults={"due_at": now + _CLAIM})[1]
    return bool(GpuScrape.objects.filter(pk=known.pk, due_at=known.due_at).update(due_at=now + _CLAIM))


def _read(row: Cluster, now: datetime) -> None:
    try:
        latest = _read_before(row)
        outcome = _outcome(row, latest)
        with _WRITING:
            try:
                _write(row, outcome, now)
            finally:
                connection.close()
    finally:
        _SLOTS.release()


def _read_before(row: Cluster) -> dict[str, datetime]:
    """When each node was read last."""
    try:
        return dict(NodeReading.objects.filter(cluster=row).values_list("node", "at"))
    finally:
        connection.close()


def _outcome(row: Cluster, latest: dict[str, datetime]) -> Outcome:
    client = member_clients.client(row, timeout_s=_ANSWER_S)  # shared, and as slow as a member's limit of requests says
    try:
        exporters = sorted(_exporters(client), key=lambda each: (each.node in latest, latest.get(each.node), each.name))
        return _read_all(client, exporters[:MOST_EXPORTERS])
    except MemberError as e:
        log.warning("GPU exporters not found", cluster=row.name, error=str(e))
        return Outcome(message=f"its exporters cannot be listed: {e.message}", is_away=not isinstance(e, MemberDenied))


def _exporters(client: MemberClient) -> list[Exporter]:
    """One for each node."""
    by_node: dict[str, Exporter] = {}
    for selector in SELECTORS:
        for page in client.pages(PODS.path(), {"labelSelector": selector}):
            for pod in page.get("items") or []:
                if (exporter := _exporter(pod)) is not None:
                    by_node.setdefault(exporter.node, exporter)
    return list(by_node.values())


def _exporter(pod: Object) -> Exporter | None:
    metadata, spec, status = (pod.get(part) or {} for part in ("metadata", "spec", "status"))
    namespace, name, node = str(metadata.get("namespace")), str(metadata.get("name")), str(spec.get("nodeName") or "")
    is_believed = namespace in settings.CONVOY_GPU_EXPORTER_NAMESPACES and status.get("phase") == "Running"
    return Exporter(namespace, name, node) if is_believed and node and not metadata.get("deletionTimestamp") else None


def _read_all(client: MemberClient, exporters: list[Exporter]) -> Outcome:
    outcome, visit = Outcome(exporters=len(exporters)), Visit(client, time.monotonic() + _BUDGET_S)
    with ThreadPoolExecutor(_EXPORTERS_AT_ONCE, thread_name_prefix="gpus") as pool:
        for exporter, answer in zip(exporters, pool.map(visit.read, exporters), strict=True):
            if isinstance(answer, str):
                outcome.message = outcome.message or f"node {exporter.node}: {answer}"
            else:
                outcome.readings[exporter.node] = answer
    outcome.is_denied = bool(visit.denied) and not outcome.readings
    return outcome


@dataclass(slots=True)
class Visit:
    """Reads the exporters of one member until a moment of the monotonic clock."""

    client: MemberClient
    until: float
    denied: dict[str, str] = field(default_factory=dict)
    """Namespaces in which the account may read none, and why: the others there need not be asked."""

    def read(self, exporter: Exporter) -> list[Reading] | str:
        """The GPUs that it prints, or why there are none."""
        if exporter.namespace in self.denied:
            return self.denied[exporter.namespace]
        if time.monotonic() > self.until:
            return "there was no time for it; it is read first the next time"
        try:
            text = self.client.get_bounded(exporter.path, most=MOST_BYTES, within_s=_ANSWER_S)
        except MemberDenied as e:
            return self.denied.setdefault(exporter.namespace, f"{_RIGHTS} {exporter.namespace}: {e.message}")
        except MemberError as e:
            return e.message
        return gpu_readings.parse(text) or "its exporter prints nothing of any GPU"


@transaction.atomic
def _write(row: Cluster, outcome: Outcome, now: datetime) -> None:
    """Only while the claim stands: a worker that was away for longer than it would put older readings over newer ones."""
    scrape = GpuScrape.objects.select_for_update(no_key=True).filter(cluster=row, due_at=now + _CLAIM).first()
    if scrape is None:
        return
    storing.store(row, outcome.readings, now)
    is_soon = outcome.is_away or (outcome.exporters and not outcome.is_denied)
    scrape.due_at = now + (_interval() if is_soon else max(_NONE, _interval()))
    scrape.message, scrape.answered = _shown(outcome.message), len(outcome.readings)
    if not outcome.is_away:
        scrape.exporters = outcome.exporters
    if outcome.readings:
        scrape.read_at = now
    scrape.save(update_fields=["due_at", "message", "exporters", "answered", "read_at"])


def _shown(message: str) -> str:
    return "".join(letter for letter in message if letter.isprintable())[:300]
