"""The watch of one member: one thread for each watched kind that only reads, and one that only writes.

Readers (`fleet.member.watching`) put what arrives into a bounded queue; the writer takes it in batches and writes nodes,
pods and holds first (`node_pod_sync`), then lets the event handlers see their objects (`reports`). Every write of the writer
is fenced by the lease under which the watch was started (`leases`). Nothing is kept anywhere but in the rows: after a crash
everything is made right from whole lists.
"""

import logging
import queue
import random
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from django.db import InterfaceError, OperationalError, connection
from django.utils import timezone

from fleet.core.members import marks, observed
from fleet.core.members.observed import Mark
from fleet.db import connections, fencing
from fleet.kube.resources import CRDS, EVENTS, NODES, PODS, Resource
from fleet.member.watching import Delivery, Reflector
from fleet.models import Cluster
from fleet.services.members import event_handlers, member_clients, member_facts, signing
from fleet.services.watching import leases, reports
from fleet.services.watching.node_pod_sync import UNWRITABLE, ClusterGone, NodePodSync
from fleet.services.watching.reports import Batch, Batches

log = logging.getLogger(__name__)

DATABASE_AWAY = (OperationalError, InterfaceError)
_BATCH_S = 0.01
"""How long more is waited for after a report that may let a job start."""
_CALM_BATCH_S = 0.05
"""And after any other: what a gang does as it starts comes in a burst of reports, which one write serves."""
_BATCH = 1000
_BACKLOG = 4000
"""Changes that may wait for the writer before the readers have to: bounds the memory."""
_MAX_LAG_S = 3.0
"""How far rows may be behind what was delivered, and still show the member as it is."""
_WRITING = threading.BoundedSemaphore(3)
"""Members of one process whose changes are written at once: with the manager's, four connections."""


class MemberWatch:
    """Everything that is watched of one member, under one epoch of its lease."""

    def __init__(self, cluster: Cluster, epoch: int, rng: random.Random) -> None:
        access = member_clients.access_of(cluster)
        self.digest, self.epoch = member_clients.digest(access), epoch
        self._cluster_id, self._name, self._rng = cluster.pk, cluster.name, rng
        self._client = member_clients.connect(access, cluster=cluster.name)
        self._fence = leases.fence(cluster.uid, epoch)
        self._stopping = threading.Event()
        self._readers: dict[Resource, tuple[Reflector, threading.Event]] = {}
        self._queue: queue.Queue[tuple[float, Delivery]] = queue.Queue(_BACKLOG)
        self._written_until = 0.0
        """Everything delivered until then, on the monotonic clock, is in rows."""
        self._sync = NodePodSync(cluster.pk)
        self._proves = partial(_proves, cluster)
        self._writer = threading.Thread(target=self._write, name=f"write {cluster.name}", daemon=True)

    def start(self, resources: Iterable[Resource]) -> None:
        self._writer.start()
        self.follow(resources)

    @property
    def alive(self) -> bool:
        return self._writer.is_alive() and all(reflector.is_alive() for reflector, _ in self._readers.values())

    @property
    def is_current(self) -> bool:
        """Whether rows are what the member shows: every kind is followed, and what was delivered is written."""
        readers = [reflector for reflector, _ in self._readers.values() if reflector.resource not in _UNVOUCHED]
        readers = [reader for reader in readers if not (reader.refused and reader.resource not in _TRANSFORMS)]
        listed = all(reader.follows and reader.listed_at <= self._written_until for reader in readers)
        return self.alive and listed and time.monotonic() - self._written_until <= _MAX_LAG_S

    def follow(self, resources: Iterable[Resource]) -> None:
        """Watches exactly these kinds from now on."""
        wanted = set(resources)
        for resource in self._readers.keys() - wanted:
            _, stop = self._readers.pop(resource)
            stop.set()
        for resource in wanted - self._readers.keys():
            stop = threading.Event()
            reflector = Reflector(
                self._client,
                resource,
                partial(self._enqueue, stop),
                stop,
                random.Random(self._rng.random()),  # noqa: S311
                selector="" if resource in _TRANSFORMS else marks.JOB_UID,
                fields=_FIELDS.get(resource, ""),
                read=self._read_pod if resource == PODS else _TRANSFORMS.get(resource, _whole),
            )
            self._readers[resource] = reflector, stop
            reflector.start()

    def stop(self) -> None:
        """Ends all threads soon; does not wait for them."""
        self._stopping.set()
        for _, stop in self._readers.values():
            stop.set()
        self._client.close()

    def join(self, timeout_s: float) -> None:
        self._writer.join(timeout_s)

    def _enqueue(self, stop: threading.Event, delivery: Delivery) -> None:
        while not stop.is_set():
            try:
                self._queue.put((time.monotonic(), delivery), timeout=0.5)
                return
            except queue.Full:
                continue

    def _write(self) -> None:
        try:
            while not self._stopping.is_set():
                batches, until = self._gather()
                if batches:
                    self._apply(batches)
                self._written_until = until
        except ClusterGone:
            log.info("%s has left the fleet", self._name)
        except leases.LeaseLost:
            log.warning("%s is watched by another process now: nothing more is written of it here", self._name)
        finally:
            self.stop()
            connection.close()

    def _gather(self) -> tuple[Batches, float]:
        """What is to be written next, and up to when it is everything that was delivered."""
        batches: Batches = {}
        until = time.monotonic()
        try:
            at, delivery = self._queue.get(timeout=0.5)
            deadline = time.monotonic() + _CALM_BATCH_S
            for _ in range(_BATCH):
                batches.setdefault(delivery.resource, Batch()).add(delivery)
                until = at
                if reports.is_urgent(delivery):
                    deadline = min(deadline, time.monotonic() + _BATCH_S)
                at, delivery = self._queue.get(timeout=max(0.0, deadline - time.monotonic()))
            batches.setdefault(delivery.resource, Batch()).add(delivery)
            until = at
        except queue.Empty:
            until = time.monotonic()
        return batches, until

    def _apply(self, batches: Batches) -> None:
        """Nodes and pods before the handlers: a hold must not end by a report that the capacity does not show yet."""
        pods = batches.pop(PODS, None)
        if pods and any(pod.own and not pod.proven for pod in pods.present.values()):
            self._persist(lambda: self._disown_unproven(pods))
        _apply_batches(self._sync, batches.pop(NODES, None), pods)
        crds = batches.pop(CRDS, None)
        pod_keys: set[event_handlers.Key] = set()

        def sync_rows() -> None:
            pod_keys.update((mark.job_uid, mark.attempt) for mark in self._sync_rows(timezone.now()))
            if crds and (not crds.listed or self._has_unknown(crds)):
                Cluster.objects.filter(pk=self._cluster_id).update(discovery_due_at=None)

        self._persist(sync_rows)
        if batches or pod_keys:
            self._persist(lambda: reports.deliver(self._cluster_id, batches, pod_keys, timezone.now()))

    def _has_unknown(self, crds: Batch) -> bool:
        """Whether the list has a kind that came after the member was last asked what it serves."""
        row = Cluster.objects.filter(pk=self._cluster_id).only("apis").first()
        return row is not None and not set(crds.present.values()) <= member_facts.definitions(row.apis)

    def _sync_rows(self, now: datetime) -> set[Mark]:
        try:
            return self._sync.write(now)
        except UNWRITABLE as e:
            left_out = self._sync.leave_out_unwritable()
            if not left_out:
                raise
            reports.record_unwritable(self._cluster_id, left_out, e, now)
            return self._sync.write(now)

    def _read_pod(self, body: dict[str, Any]) -> observed.ObservedPod:
        return observed.pod(body, event_handlers.pod_role, self._proves)

    def _disown_unproven(self, pods: Batch | None) -> None:
        """A pod that carries a job's labels without a genuine mark takes room on its node, and belongs to no job."""
        unproven = {key: pod for key, pod in pods.present.items() if pod.own and not pod.proven} if pods else {}
        if pods is None or not unproven:
            return
        believed = event_handlers.unmarked(
            self._cluster_id, {(pod.own.mark, pod.namespace) for pod in unproven.values()}
        )
        for key, pod in unproven.items():
            if (pod.own.mark, pod.namespace) not in believed:
                pods.present[key] = replace(pod, own=None)

    def _persist(self, action: Callable[[], None]) -> None:
        """Does it until the database takes it, or the lease is lost. ``action`` must be repeatable."""
        while not self._stopping.is_set():
            try:
                with _WRITING:
                    with fencing.fenced(self._fence):
                        action()
                    connections.give_back()
                return
            except DATABASE_AWAY as e:
                log.warning("%s: the database did not take what the watch delivered, trying again: %s", self._name, e)
                connection.close()
                self._stopping.wait(0.2 + 0.3 * self._rng.random())


def _whole(body: dict[str, Any]) -> dict[str, Any]:
    return body


def _definition(body: dict[str, Any]) -> str:
    """Plural and group of the kind that a CustomResourceDefinition adds."""
    return str((body.get("metadata") or {}).get("name", ""))


def _proves(cluster: Cluster, mark: Mark, namespace: str, label: object) -> bool:
    return signing.are_its_pods(cluster, label, str(mark.job_uid), mark.attempt, namespace)


_TRANSFORMS: dict[Resource, Callable[[dict[str, Any]], Any]] = {
    NODES: observed.node, PODS: _whole, CRDS: _definition, EVENTS: observed.refusal
}  # fmt: skip
"""Kinds of which every object is watched, not only those that carry our label, and what is kept of each object."""


_FIELDS = {EVENTS: "type=Warning,involvedObject.kind!=Pod,involvedObject.kind!=Node"}
"""Most warnings of a member are about pods and nodes: it need not send them."""
_UNVOUCHED = frozenset({EVENTS})
"""Kinds whose objects come and go by themselves: no row stands for them."""


def _apply_batches(sync: NodePodSync, nodes: Batch | None, pods: Batch | None) -> None:
    if nodes:
        if nodes.listed:
            sync.list_nodes(list(nodes.present.values()))
        else:
            for item in nodes.gone:
                sync.ledger.lose_node(item.key[1])
            for node in nodes.present.values():
                sync.ledger.see_node(node)
    if pods:
        if pods.listed:
            sync.list_pods(list(pods.present.values()))
        else:
            for item in pods.gone:
                sync.lose_pod(item.key)
            for pod in pods.present.values():
                sync.see_pod(pod)
