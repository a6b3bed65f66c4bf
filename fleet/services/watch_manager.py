"""Watches the members and brings what they show into rows, member by member.

For each member: one thread per watched kind that only reads (`fleet.member.watching`), and one that only writes, in
batches: nodes, pods and holds first (`fleet.services.node_pod_sync`), then the followers. A member that is dead or slow stops
nobody but itself. Nothing is kept anywhere but in the rows: after a crash everything is made right from whole lists.
"""

import logging
import queue
import random
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import InterfaceError, OperationalError, connection
from django.utils import timezone

from fleet import connections, events, heartbeat, journal
from fleet.core import marks, observed
from fleet.core.observed import Key, Mark
from fleet.kube.resources import CRDS, NODES, PODS, Resource
from fleet.member.watching import Changed, Delivery, Item, Listed, Reflector
from fleet.models import Cluster
from fleet.services import (
    clusters,
    event_handlers,
    member_clients,
    member_facts,
    pictures,
    process_pods,
    processes,
    signing,
)
from fleet.services.node_pod_sync import UNWRITABLE, ClusterGone, Supply

log = logging.getLogger(__name__)

_BATCH_S = 0.01
_BATCH = 1000
_BACKLOG = 4000
"""Changes that may wait for the writer before the readers have to: bounds the memory."""
_MOST_BEHIND_S = 3.0
"""How far rows may be behind what was delivered, to be what the member shows."""
_WRITING = threading.BoundedSemaphore(3)
"""Members of one process whose changes are written at once: with the tower's, four connections."""
_DATABASE_AWAY = (OperationalError, InterfaceError)


@dataclass(slots=True)
class Batch:
    """The latest of each object of one kind, out of many deliveries."""

    listed: bool = False
    began: float = 0.0
    """When the list was asked for, on the monotonic clock."""
    present: dict[Key, Any] = field(default_factory=dict)
    gone: list[Item] = field(default_factory=list)

    def add(self, delivery: Delivery) -> None:
        match delivery:
            case Listed(items=items, began=began):
                self.listed, self.began = True, began
                self.present = {item.key: item.value for item in items}
            case Changed(item=item, gone=True):
                self.present.pop(item.key, None)
                self.gone.append(item)
            case Changed(item=item):
                self.present[item.key] = item.value


Batches = dict[Resource, Batch]


class MemberWatch:
    """Everything that is watched of one member."""

    def __init__(self, cluster: Cluster, rng: random.Random) -> None:
        access = member_clients.access_of(cluster)
        self.digest = member_clients.digest(access)
        self._cluster_id, self._name, self._rng = cluster.pk, cluster.name, rng
        self._client = member_clients.connect(access, cluster=cluster.name)
        self._stopping = threading.Event()
        self._reading: dict[Resource, tuple[Reflector, threading.Event]] = {}
        self._queue: queue.Queue[tuple[float, Delivery]] = queue.Queue(_BACKLOG)
        self._written_until = 0.0
        """Everything delivered until then, on the monotonic clock, is in rows."""
        self._supply = Supply(cluster.pk)
        self._proves = partial(_proves, cluster)
        self._writer = threading.Thread(target=self._write, name=f"write {cluster.name}", daemon=True)

    def start(self, resources: Iterable[Resource]) -> None:
        self._writer.start()
        self.follow(resources)

    @property
    def alive(self) -> bool:
        return self._writer.is_alive() and all(reflector.is_alive() for reflector, _ in self._reading.values())

    @property
    def is_current(self) -> bool:
        """Whether rows are what the member shows: every kind is followed, and what was delivered is written."""
        readers = [reflector for reflector, _ in self._reading.values()]
        readers = [each for each in readers if not (each.refused and each.resource not in _READERS)]
        listed = all(each.follows and each.listed_at <= self._written_until for each in readers)
        return self.alive and listed and time.monotonic() - self._written_until <= _MOST_BEHIND_S

    def follow(self, resources: Iterable[Resource]) -> None:
        """Watches exactly these kinds from now on."""
        wanted = set(resources)
        for resource in self._reading.keys() - wanted:
            _, stop = self._reading.pop(resource)
            stop.set()
        for resource in wanted - self._reading.keys():
            stop = threading.Event()
            reflector = Reflector(
                self._client,
                resource,
                lambda delivery, stop=stop: self._take(delivery, stop),  # type: ignore[misc]  # mypy infers no lambda with a default
                stop,
                random.Random(self._rng.random()),  # noqa: S311
                selector="" if resource in _READERS else marks.JOB_UID,
                read=self._read_pod if resource == PODS else _READERS.get(resource, _whole),
            )
            self._reading[resource] = reflector, stop
            reflector.start()

    def stop(self) -> None:
        """Ends all threads soon; does not wait for them."""
        self._stopping.set()
        for _, stop in self._reading.values():
            stop.set()
        self._client.close()

    def join(self, timeout_s: float) -> None:
        self._writer.join(timeout_s)

    def _take(self, delivery: Delivery, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                self._queue.put((time.monotonic(), delivery), timeout=0.5)
                return
            except queue.Full:
                continue

    def _write(self) -> None:
        try:
            self._persist(self._supply.remember)
            while not self._stopping.is_set():
                batches, until = self._gather()
                if batches:
                    self._apply(batches)
                self._written_until = until
        except ClusterGone:
            log.info("%s has left the fleet", self._name)
        finally:
            self.stop()
            connection.close()

    def _gather(self) -> tuple[Batches, float]:
        """What is to be written next, and up to when it is everything that was delivered."""
        batches: Batches = {}
        until = time.monotonic()
        try:
            at, delivery = self._queue.get(timeout=0.5)
            deadline = time.monotonic() + _BATCH_S
            for _ in range(_BATCH):
                batches.setdefault(delivery.resource, Batch()).add(delivery)
                until = at
                at, delivery = self._queue.get(timeout=max(0.0, deadline - time.monotonic()))
            batches.setdefault(delivery.resource, Batch()).add(delivery)
            until = at
        except queue.Empty:
            until = time.monotonic()
        return batches, until

    def _apply(self, batches: Batches) -> None:
        """Supply before the followers: a hold is never ended by news that the capacity does not show yet."""
        pods = batches.pop(PODS, None)
        self._persist(lambda: self._doubt(pods))
        _feed(self._supply, batches.pop(NODES, None), pods)
        crds = batches.pop(CRDS, None)
        keys: set[event_handlers.Key] = set()

        def supply() -> None:
            keys.update((mark.job_uid, mark.attempt) for mark in self._write_supply(timezone.now()))
            if crds and not crds.listed:
                Cluster.objects.filter(pk=self._cluster_id).update(discovered_at=None)

        self._persist(supply)
        if batches or keys:
            self._persist(lambda: _tell(self._cluster_id, batches, keys, timezone.now()))

    def _write_supply(self, now: datetime) -> set[Mark]:
        try:
            return self._supply.write(now)
        except UNWRITABLE as e:
            left_out = self._supply.leave_out_unwritable()
            if not left_out:
                raise
            _record_unwritable(self._cluster_id, left_out, e, now)
            return self._supply.write(now)

    def _read_pod(self, found: dict[str, Any]) -> observed.PodSeen:
        return observed.pod(found, event_handlers.pod_role, self._proves)

    def _doubt(self, pods: Batch | None) -> None:
        """A pod that only says it is ours takes room on its node, and belongs to no job."""
        doubtful = {key: pod for key, pod in pods.present.items() if pod.own and not pod.proven} if pods else {}
        if pods is None or not doubtful:
            return
        believed = event_handlers.unmarked(
            self._cluster_id, {(pod.own.mark, pod.namespace) for pod in doubtful.values()}
        )
        for key, pod in doubtful.items():
            if (pod.own.mark, pod.namespace) not in believed:
                pods.present[key] = replace(pod, own=None)

    def _persist(self, action: Callable[[], None]) -> None:
        """Does it until the database takes it. ``action`` must be repeatable."""
        while not self._stopping.is_set():
            try:
                with _WRITING:
                    action()
                    connections.give_back()
                return
            except _DATABASE_AWAY as e:
                log.warning("%s: the database did not take what the watch saw, trying again: %s", self._name, e)
                connection.close()
                self._stopping.wait(0.2 + 0.3 * self._rng.random())


def _whole(found: dict[str, Any]) -> dict[str, Any]:
    return found


def _nothing(_: dict[str, Any]) -> None:
    return None


def _proves(cluster: Cluster, mark: Mark, namespace: str, label: object) -> bool:
    return signing.are_its_pods(cluster, label, str(mark.job_uid), mark.attempt, namespace)


_READERS: dict[Resource, Callable[[dict[str, Any]], Any]] = {NODES: observed.node, PODS: _whole, CRDS: _nothing}


def _feed(supply: Supply, nodes: Batch | None, pods: Batch | None) -> None:
    if nodes:
        if nodes.listed:
            supply.list_nodes(list(nodes.present.values()))
        else:
            for item in nodes.gone:
                supply.ledger.lose_node(item.key[1])
            for node in nodes.present.values():
                supply.ledger.see_node(node)
    if pods:
        if pods.listed:
            supply.list_pods(list(pods.present.values()))
        else:
            for item in pods.gone:
                supply.lose_pod(item.key)
            for pod in pods.present.values():
                supply.see_pod(pod)


def _tell(cluster_id: int, batches: Batches, keys: set[event_handlers.Key], now: datetime) -> None:
    """Each call is a transaction of the follower's own, which locks the jobs it is about in their order."""
    for follower in event_handlers.everybody():
        for resource in follower.resources():
            batch = batches.get(resource)
            if batch is None:
                continue
            if batch.gone:
                gone = [item.value for item in batch.gone]
                _hand_over(follower.vanished, cluster_id, resource, gone, now)
            if batch.present:
                _hand_over(follower.observed, cluster_id, resource, list(batch.present.values()), now)
            if batch.listed:
                asked = now - timedelta(seconds=time.monotonic() - batch.began)
                follower.synced(cluster_id, resource, _keys(batch.present.values()), asked, now)
        if keys:
            follower.pods_changed(cluster_id, keys, now)


Report = Callable[[int, Resource, Sequence[dict[str, Any]], datetime], None]


def _hand_over(
    report: Report, cluster_id: int, resource: Resource, objects: list[dict[str, Any]], now: datetime
) -> None:
    """All at once; if that cannot be, in halves, until the one object is left that cannot be written."""
    try:
        report(cluster_id, resource, objects, now)
    except UNWRITABLE as e:
        half = len(objects) // 2
        if half:
            _hand_over(report, cluster_id, resource, objects[:half], now)
            _hand_over(report, cluster_id, resource, objects[half:], now)
            return
        metadata = objects[0]["metadata"]
        name = f"{resource.kind} {metadata.get('namespace', '')}/{metadata['name']}"
        _record_unwritable(cluster_id, [name], e, now)


def _record_unwritable(cluster_id: int, names: Sequence[str], error: Exception, now: datetime) -> None:
    log.warning("left out of what the member shows", extra={"objects": names}, exc_info=error)
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    if cluster is not None:
        message = f"left as they were, because what the cluster says of them cannot be stored: {', '.join(names[:5])}"
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        events.record(clusters.change(cluster), "ObjectUnreadable", message + more, now, warning=True)


def _keys(objects: Iterable[dict[str, Any]]) -> set[event_handlers.Key]:
    found = (observed.mark_of(each["metadata"].get("labels") or {}) for each in objects)
    return {(mark.job_uid, mark.attempt) for mark in found if mark}


class Watchtower:
    """Keeps one `MemberWatch` per cluster: joined, renewed and detached ones are noticed through the journal."""

    look_s = 0.3
    beat_every = timedelta(seconds=2)
    review_every = timedelta(seconds=20)
    """Everything is compared this often even when the journal says nothing."""
    again_s = 5.0
    """A watch that crashed is started again after this."""

    def __init__(self, stop: threading.Event, rng: random.Random) -> None:
        self._stopping, self._rng = stop, rng
        self._watches: dict[int, MemberWatch] = {}
        self._not_before: dict[int, float] = {}
        self._version = -1
        self._beat_at = self._reviewed_at = datetime.min.replace(tzinfo=timezone.now().tzinfo)

    def run(self) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    self.look(timezone.now())
                    connections.give_back()
                except _DATABASE_AWAY as e:
                    log.warning("the database does not answer, trying again: %s", e)
                    connection.close()
                self._stopping.wait(self.look_s)
        finally:
            self.stop()

    def look(self, now: datetime) -> None:
        """One look at the journal, and at the clusters when it or the clock says so."""
        heartbeat.beat()
        if abs(now - self._beat_at) >= self.beat_every:
            processes.beat("watcher", now)
            pictures.confirm([pk for pk, watch in self._watches.items() if watch.is_current], now)
            self._beat_at = now
        if self._news() or abs(now - self._reviewed_at) >= self.review_every or self._crashed():
            self._review()
            self._reviewed_at = now

    def stop(self) -> None:
        for watch in self._watches.values():
            watch.stop()
        deadline = time.monotonic() + 1.0
        for watch in self._watches.values():
            watch.join(max(0.0, deadline - time.monotonic()))
        self._watches.clear()

    def _news(self) -> bool:
        """Whether any cluster changed since the last look, or that cannot be told."""
        if self._version < journal.floor():
            self._version = journal.head()
            return True
        changed = False
        while entries := journal.after(self._version):
            self._version = entries[-1].version
            changed = changed or any(entry.kind == "Cluster" for entry in entries)
        return changed

    def _crashed(self) -> bool:
        return any(not w.alive and self._not_before.get(pk, 0) < time.monotonic() for pk, w in self._watches.items())

    def _review(self) -> None:
        rows = {row.pk: row for row in Cluster.objects.all()}
        process_pods.publish(rows.values())
        for pk in [pk for pk in self._watches if pk not in rows]:
            self._watches.pop(pk).stop()
        for row in rows.values():
            watch = self._watches.get(row.pk)
            if watch and watch.alive and watch.digest == member_clients.digest(member_clients.access_of(row)):
                watch.follow(watched(row))
            elif self._not_before.get(row.pk, 0) < time.monotonic():
                self._start(row, watch)

    def _start(self, row: Cluster, old: MemberWatch | None) -> None:
        if old:
            old.stop()
            old.join(1.0)
        self._not_before[row.pk] = time.monotonic() + (self.again_s if old and not old.alive else 0)
        watch = self._watches[row.pk] = MemberWatch(row, self._rng)
        watch.start(watched(row))


def watched(cluster: Cluster) -> Sequence[Resource]:
    """What is worth watching in this member: supply, and those of the followers' kinds that it serves."""
    kinds = [kind for kind in event_handlers.resources() if member_facts.serves(cluster.apis, kind)]
    may_see_kinds = all(p["allowed"] for p in cluster.permissions if p["resource"] == f"{CRDS.plural}.{CRDS.group}")
    crds = [CRDS] if member_facts.serves(cluster.apis, CRDS) and may_see_kinds else []
    return [NODES, PODS, *kinds, *crds]
