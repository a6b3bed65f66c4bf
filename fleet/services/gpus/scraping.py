"""Reads the dcgm-exporters of members through their API servers: each with one request in an interval, apart from all tasks.

A member is due when `GpuScrape.due_at` has passed. A worker claims it by moving that time and reads it in a thread of its own,
in bounded time: however slow an exporter is, it holds up no task. What an exporter does is never counted against its member.
Exporters are pods with the labels of NVIDIA's charts in namespaces of the operator; each is believed of its own node only.
"""

import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import product
from queue import Empty, SimpleQueue

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, Q
from structlog import get_logger

from fleet.core import gpu_readings
from fleet.core.gpu_readings import Reading
from fleet.core.members.health import State
from fleet.db import isolation
from fleet.kube.resources import PODS
from fleet.member.client import MemberClient, Object
from fleet.member.errors import MemberAway, MemberDenied, MemberError
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
"""For all exporters of a member, from when they are listed on; those that are left come before others the next time."""
_CLAIM = timedelta(seconds=120)
"""Longer than a member takes."""
_NONE = timedelta(minutes=10)
"""After which a member without exporters is looked at again."""
_MEMBERS_AT_ONCE, _EXPORTERS_AT_ONCE = 4, 4
_SLOTS = threading.BoundedSemaphore(_MEMBERS_AT_ONCE)
_WRITING = threading.Lock()
"""One result is written at a time, so that all threads together need one database connection."""
_BROKEN = "it could not be read; the log of the worker says why"
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
    failed: dict[str, float] = field(default_factory=dict)
    """When each node was asked that did not answer, in seconds since the epoch."""
    message: str = ""
    is_denied: bool = False
    is_away: bool = False
    """Whether its exporters could not be listed now: it is asked again after the usual interval."""


def start(now: datetime) -> list[threading.Thread]:
    """Begins to read members that are due, as many as there are free slots; does not wait for their answers."""
    threads: list[threading.Thread] = []
    while settings.CONVOY_GPUS.interval_s and (thread := _begin(now)) is not None:
        threads.append(thread)
    return threads


def _begin(now: datetime) -> threading.Thread | None:
    """None when no member is due, or no slot is free."""
    if not _SLOTS.acquire(blocking=False):
        return None
    with ExitStack() as slot:
        slot.callback(_SLOTS.release)
        row = _claimed(now)
        if row is None:
            return None
        # Daemons, as all threads here: a worker that stops does not wait for exporters.
        thread = threading.Thread(target=_read_on, args=(row, now), name=f"gpus {row.name}", daemon=True)
        thread.start()
        slot.pop_all()
    return thread


def _claimed(now: datetime) -> Cluster | None:
    """The member that has been due the longest; one that was never read before all others."""
    due = Cluster.objects.filter(_due(now), state=State.READY, failing_since=None).select_related("gpu_scrape")
    rows = due.order_by(F("gpu_scrape__due_at").asc(nulls_first=True), "pk")[: 2 * _MEMBERS_AT_ONCE]
    return next((row for row in rows if _claim(row, now)), None)


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


def _read_on(row: Cluster, now: datetime) -> None:
    """Reads a member, and then others until none is due: what one slot can do is not bound by how often tasks run."""
    began, at, claimed = time.monotonic(), now, row
    try:
        while True:
            _read(claimed, at)
            at = now + timedelta(seconds=time.monotonic() - began)
            with _WRITING:
                try:
                    following = _claimed(at)
                finally:
                    connection.close()
            if following is None:
                return
            claimed = following
    finally:
        _SLOTS.release()


def _read(row: Cluster, now: datetime) -> None:
    read = partial(_outcome, row, _read_before(row), now)
    [outcome] = isolation.run("gpus.read", [row.name], read, savepoint=False) or [
        Outcome(message=_BROKEN, is_away=True)
    ]
    with _WRITING:
        try:
            _write(row, outcome, now)
        finally:
            connection.close()


@dataclass(frozen=True, slots=True)
class Before:
    """When each node was read last, and when each that did not answer then was asked, in seconds since the epoch."""

    latest: Mapping[str, datetime] = field(default_factory=dict)
    failed: Mapping[str, float] = field(default_factory=dict)


def _read_before(row: Cluster) -> Before:
    with _WRITING:
        try:
            latest = dict(NodeReading.objects.filter(cluster=row).values_list("node", "at"))
            return Before(latest, GpuScrape.objects.filter(cluster=row).values_list("failed", flat=True).first() or {})
        finally:
            connection.close()


def _outcome(row: Cluster, before: Before, now: datetime) -> Outcome:
    client = member_clients.client(row, timeout_s=_ANSWER_S)  # shared, and as slow as a member's limit of requests says
    until = time.monotonic() + _BUDGET_S
    try:
        exporters = in_order(_exporters(client, until), before)
    except MemberError as e:
        log.warning("GPU exporters not found", cluster=row.name, error=str(e))
        return Outcome(
            message=f"its exporters cannot be listed: {e.message}",
            failed=dict(before.failed),
            is_away=not isinstance(e, MemberDenied),
        )
    return _read_all(Visit(client, row.name, until), exporters, before, now)


def _exporters(client: MemberClient, until: float) -> list[Exporter]:
    """One for each node. Namespace by namespace: pods of tenants with such labels are not even listed."""
    by_node: dict[str, Exporter] = {}
    for namespace, selector in product(sorted(settings.CONVOY_GPU_EXPORTER_NAMESPACES), SELECTORS):
        query = {"labelSelector": selector, "fieldSelector": "status.phase=Running"}
        for page in client.pages(PODS.path(namespace), query):
            for pod in page.get("items") or []:
                if (exporter := _exporter(pod)) is not None:
                    by_node.setdefault(exporter.node, exporter)
            if time.monotonic() > until:
                raise MemberAway(f"listing them takes longer than {_BUDGET_S:g} s")
    return list(by_node.values())


def in_order(exporters: Iterable[Exporter], before: Before) -> list[Exporter]:
    """Those first that were read the longest ago, or never; last those that did not answer, but for a few of them.

    Each that does not answer takes the time of many that do. The few come first, so that one that is well again is read
    also where the others take all the time.
    """
    rows = list(exporters)
    well = sorted(
        (each for each in rows if each.node not in before.failed),
        key=lambda each: (each.node in before.latest, before.latest.get(each.node), each.name),
    )
    failed = sorted(
        (each for each in rows if each.node in before.failed), key=lambda each: (before.failed[each.node], each.name)
    )
    return [*failed[:_EXPORTERS_AT_ONCE], *well, *failed[_EXPORTERS_AT_ONCE:]]


def _exporter(pod: Object) -> Exporter | None:
    metadata, spec, status = (pod.get(part) or {} for part in ("metadata", "spec", "status"))
    namespace, name, node = str(metadata.get("namespace")), str(metadata.get("name")), str(spec.get("nodeName") or "")
    is_believed = namespace in settings.CONVOY_GPU_EXPORTER_NAMESPACES and status.get("phase") == "Running"
    return Exporter(namespace, name, node) if is_believed and node and not metadata.get("deletionTimestamp") else None


def _read_all(visit: "Visit", exporters: list[Exporter], before: Before, now: datetime) -> Outcome:
    outcome = Outcome(exporters=len(exporters))
    if len(exporters) > MOST_EXPORTERS:
        outcome.message = f"it has {len(exporters)} exporters, of which {MOST_EXPORTERS} are read at a time"
    visit.read_all(exporters[:MOST_EXPORTERS])
    for exporter in exporters[:MOST_EXPORTERS]:
        answer, node = visit.answers.get(exporter.node, _BROKEN), exporter.node
        if not isinstance(answer, str):
            outcome.readings[node] = answer
            continue
        outcome.message = outcome.message or f"node {node}: {answer}"
        if node in visit.tried:
            outcome.failed[node] = now.timestamp()
        elif node in before.failed:
            outcome.failed[node] = before.failed[node]
    outcome.is_denied = bool(visit.denied) and not outcome.readings
    return outcome


@dataclass(slots=True)
class Visit:
    """Reads the exporters of one member until a moment of the monotonic clock."""

    client: MemberClient
    cluster: str
    until: float
    answers: dict[str, list[Reading] | str] = field(default_factory=dict)
    """By node: the GPUs that its exporter prints, or why there are none."""
    tried: set[str] = field(default_factory=set)
    """Nodes whose exporters were asked."""
    denied: dict[str, str] = field(default_factory=dict)
    """Namespaces in which the account may read none, and why: the others there need not be asked."""

    def read_all(self, exporters: list[Exporter]) -> None:
        """A few at once; in threads that nothing waits for when the process ends."""
        left: SimpleQueue[Exporter] = SimpleQueue()
        for exporter in exporters:
            left.put(exporter)
        threads = [
            threading.Thread(target=self._read_each, args=(left,), name=f"gpus of {self.cluster}", daemon=True)
            for _ in exporters[:_EXPORTERS_AT_ONCE]
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _read_each(self, left: "SimpleQueue[Exporter]") -> None:
        with suppress(Empty):
            while True:
                exporter = left.get_nowait()
                read = partial(self.read, exporter)
                result = isolation.run("gpus.exporter", [self.cluster, exporter.node], read, savepoint=False)
                self.answers[exporter.node] = _BROKEN if result is None else result[0]

    def read(self, exporter: Exporter) -> list[Reading] | str:
        if exporter.namespace in self.denied:
            return self.denied[exporter.namespace]
        if time.monotonic() > self.until:
            return "there was no time for it"
        self.tried.add(exporter.node)
        try:
            text = self.client.get_bounded(exporter.path, most=MOST_BYTES, within_s=_ANSWER_S)
        except MemberDenied as e:
            # An exporter behind a proxy of its own may refuse as well, which says nothing of the others.
            if e.reason != "Forbidden":
                return f"its exporter refuses to answer: {e.message}"
            return self.denied.setdefault(exporter.namespace, f"{_RIGHTS} {exporter.namespace}: {e.message}")
        except MemberError as e:
            return e.message
        readings = gpu_readings.parse(text, is_over=lambda: time.monotonic() > self.until)
        return readings or "its exporter prints nothing of any GPU"


@transaction.atomic
def _write(row: Cluster, outcome: Outcome, now: datetime) -> None:
    """Only while the claim stands: a worker that was away for longer than it would put older readings over newer ones."""
    scrape = GpuScrape.objects.select_for_update(no_key=True).filter(cluster=row, due_at=now + _CLAIM).first()
    if scrape is None:
        return
    storing.store(row, outcome.readings, now)
    is_soon = outcome.is_away or (outcome.exporters and not outcome.is_denied)
    scrape.due_at = now + (_interval() if is_soon else max(_NONE, _interval()))
    scrape.failed = outcome.failed
    scrape.message, scrape.answered = _shown(outcome.message), len(outcome.readings)
    if not outcome.is_away:
        scrape.exporters = outcome.exporters
    if outcome.readings:
        scrape.read_at = now
    scrape.save(update_fields=["due_at", "message", "exporters", "answered", "failed", "read_at"])


def _shown(message: str) -> str:
    return "".join(letter for letter in message if letter.isprintable())[:300]
