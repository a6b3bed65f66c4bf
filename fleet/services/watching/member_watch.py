"""The watch of one member: one reader task for each watched kind, and an inbox that is written in batches.

Readers (`fleet.member.watching`) run in the event loop of the process and put what arrives into the bounded inbox (`inbox`).
One of the few writer threads of the process takes a batch: it writes nodes, pods and holds first (`node_pod_sync`), and then
calls the event handlers (`reports`). Every transaction is fenced by the lease under which the watch was started (`leases`). All
durable state is in rows: after a crash, the rows are corrected from complete lists.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection

from fleet.core.dra import inventory
from fleet.core.members import marks, observed
from fleet.core.members.observed import Mark
from fleet.db import clock, connections, fencing
from fleet.kube.resources import (
    CRDS,
    DEVICE_CLASSES,
    EVENTS,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from fleet.member.streaming.client import StreamClient
from fleet.member.watching import Reflector
from fleet.models import Cluster
from fleet.services.members import event_handlers, member_clients, member_facts, signing
from fleet.services.watching import engine, leases, reports
from fleet.services.watching.inbox import Inbox, Retry
from fleet.services.watching.node_pod_sync import UNWRITABLE, ClusterGone, NodePodSync
from fleet.services.watching.reports import Batch, Batches

log = logging.getLogger(__name__)

DATABASE_AWAY = (OperationalError, InterfaceError)
_MAX_LAG_S = 3.0
"""How far the rows may lag behind the deliveries while the member still counts as current."""


class MemberWatch:
    """Readers and inbox of one member, under one epoch of its lease."""

    def __init__(self, cluster: Cluster, epoch: int, rng: random.Random) -> None:
        access = member_clients.access_of(cluster)
        self.digest, self.epoch = member_clients.digest(access), epoch
        self._cluster_id, self._name, self._rng = cluster.pk, cluster.name, rng
        self._fence = leases.fence(cluster.uid, epoch)
        self._loop = engine.loop()
        private_ok, turns = settings.CONVOY_PRIVATE_MEMBERS, engine.turns()
        self._client = StreamClient(access, private_ok=private_ok, cluster=cluster.name, turns=turns)
        self._readers: dict[Resource, tuple[Reflector, Future[None]]] = {}
        self._inbox = Inbox(self._loop, engine.writers(), self._write)
        self._sync = NodePodSync(cluster.pk)
        self._listed_devices: set[Resource] = set()
        self._refused_devices: set[Resource] = set()
        self._pod_keys: set[event_handlers.Key] = set()
        """Attempts whose pod rows have changed, and of which the handlers were not called yet."""
        self._proves = partial(_proves, cluster)

    def start(self, resources: Iterable[Resource]) -> None:
        self.follow(resources)

    @property
    def alive(self) -> bool:
        return not self._inbox.is_closed and not any(task.done() for _, task in self._readers.values())

    @property
    def is_current(self) -> bool:
        """Whether the rows show the member as it is: every kind is listed and watched, and all deliveries are written."""
        readers = [reflector for reflector, _ in self._readers.values() if reflector.resource not in _UNVOUCHED]
        readers = [reader for reader in readers if not (reader.refused and reader.resource not in _EVERYWHERE)]
        written_until = self._inbox.written_until
        listed = all(reader.follows and reader.listed_at <= written_until for reader in readers)
        return self.alive and listed and time.monotonic() - written_until <= _MAX_LAG_S

    def follow(self, resources: Iterable[Resource]) -> None:
        """Watches exactly these kinds from now on."""
        wanted = set(resources)
        for resource in self._readers.keys() - wanted:
            _, task = self._readers.pop(resource)
            task.cancel()
        for resource in wanted - self._readers.keys():
            reflector = Reflector(
                self._client,
                resource,
                self._inbox.put,
                random.Random(self._rng.random()),  # noqa: S311
                selector="" if resource in _TRANSFORMS else marks.JOB_UID,
                fields=_FIELDS.get(resource, ""),
                read=self._read_pod if resource == PODS else _TRANSFORMS.get(resource, _whole),
                expect=None if resource in _TRANSFORMS else partial(self._expected, resource),
            )
            reflector.optional = resource in DEVICES
            task = asyncio.run_coroutine_threadsafe(reflector.run(), self._loop)
            task.add_done_callback(partial(_log_end, self._name, resource))
            self._readers[resource] = reflector, task

    def stop(self) -> None:
        """Ends all tasks soon; does not wait for them."""
        self._inbox.close()
        for _, task in self._readers.values():
            task.cancel()
        self._loop.call_soon_threadsafe(self._client.close)

    def join(self, timeout_s: float) -> None:
        """Waits until nothing of this watch is being written."""
        self._inbox.join(timeout_s)

    async def _expected(self, resource: Resource) -> frozenset[event_handlers.Key]:
        """The attempts that must be in a list that is requested now; waits for the database if that is away."""
        while True:
            try:
                return await self._loop.run_in_executor(engine.writers(), self._read_expected, resource)
            except DATABASE_AWAY as e:
                log.warning("%s: the database does not answer; its list waits: %s", self._name, e)
                await asyncio.sleep(0.2 + 0.3 * self._rng.random())

    def _read_expected(self, resource: Resource) -> frozenset[event_handlers.Key]:
        """In a writer's thread."""
        try:
            return event_handlers.expected(self._cluster_id, resource)
        except DATABASE_AWAY:
            connection.close()
            raise
        finally:
            connections.give_back()

    def _write(self, batches: Batches) -> None:
        """Called by a writer, with one batch at a time; again with the rest of it after `Retry`."""
        try:
            self._apply(batches)
        except ClusterGone:
            log.info("%s has left the fleet", self._name)
            self.stop()
        except leases.LeaseLost:
            log.warning("%s is now watched by another process: this watch stops", self._name)
            self.stop()
        finally:
            connections.give_back()

    def _apply(self, batches: Batches) -> None:
        """Writes nodes and pods, then calls the handlers. What is written is taken out of ``batches``."""
        # Nodes and pods come first: a handler may end a hold, and the free capacity must count the hold's pods by then.
        pods = batches.get(PODS)
        if pods and any(pod.own and not pod.proven for pod in pods.present.values()):
            self._persist(lambda: self._disown_unproven(pods))
        self._apply_devices(batches)
        _apply_batches(self._sync, batches.pop(NODES, None), batches.pop(PODS, None))
        self._persist(lambda: self._write_rows(batches.get(CRDS)))
        batches.pop(CRDS, None)
        if batches or self._pod_keys:
            self._persist(lambda: reports.deliver(self._cluster_id, batches, self._pod_keys, clock.now()))
        self._pod_keys = set()

    def _apply_devices(self, batches: Batches) -> None:
        """Before pods: a pod is bound once its devices are counted.

        What is refused is read from the deliveries, in their order, and not from the readers, which may be ahead of them.
        """
        is_followed, devices = self._readers.keys() >= set(DEVICES), self._sync.ledger.devices
        for resource in DEVICES:
            if batch := batches.pop(resource, None):
                if batch.listed:
                    self._listed_devices.add(resource)
                    self._refused_devices.discard(resource)
                if batch.refused:
                    self._refused_devices.add(resource)
                reports.update_devices(devices, resource, batch)
        if not is_followed:
            self._listed_devices.clear()
            self._refused_devices.clear()
        devices.switch(on=is_followed and not self._refused_devices)
        self._sync.awaits_devices = is_followed and self._listed_devices != set(DEVICES)
        self._sync.see_allocated()

    def _write_rows(self, crds: Batch | None) -> None:
        self._pod_keys |= {(mark.job_uid, mark.attempt) for mark in self._sync_rows(clock.now())}
        if crds and (not crds.listed or self._has_unknown(crds)):
            Cluster.objects.filter(pk=self._cluster_id).update(discovery_due_at=None)

    def _has_unknown(self, crds: Batch) -> bool:
        """Whether the list has a CustomResourceDefinition that is newer than the last discovery of the member."""
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
        """Treats pods that have a job's labels without a valid signature as pods of other owners.

        They still use the capacity of their node. Pods that a handler knows to be older than the signatures keep their job.
        """
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
        """Runs the action in a transaction. ``action`` must be idempotent.

        Raises `Retry` when the database does not answer, and `LeaseLost` once another watcher has the member.
        """
        try:
            with fencing.fenced(self._fence):
                action()
        except DATABASE_AWAY as e:
            log.warning("%s: the database does not answer; the write is tried again: %s", self._name, e)
            connection.close()
            raise Retry(0.2 + 0.3 * self._rng.random()) from e


def _log_end(cluster: str, resource: Resource, task: "Future[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("%s: the watch of %s ends by an error", cluster, resource.plural, exc_info=error)


def _whole(body: dict[str, Any]) -> dict[str, Any]:
    return body


def _definition(body: dict[str, Any]) -> str:
    """The name of a CustomResourceDefinition: plural and group of the kind it defines."""
    return str((body.get("metadata") or {}).get("name", ""))


def _proves(cluster: Cluster, mark: Mark, namespace: str, label: object) -> bool:
    return signing.are_its_pods(cluster, label, str(mark.job_uid), mark.attempt, namespace)


DEVICES = (RESOURCE_SLICES, DEVICE_CLASSES, RESOURCE_CLAIMS)
"""What says which devices pods get by claims: watched all three, or none."""
_TRANSFORMS: dict[Resource, Callable[[dict[str, Any]], Any]] = {
    NODES: observed.node, PODS: _whole, CRDS: _definition, EVENTS: observed.refusal,
    RESOURCE_SLICES: inventory.read_slice, DEVICE_CLASSES: inventory.read_class, RESOURCE_CLAIMS: inventory.read_claim,
}  # fmt: skip
"""Kinds that are watched without a label selector, and what is kept of each object."""


_FIELDS = {EVENTS: "type=Warning,involvedObject.kind!=Pod,involvedObject.kind!=Node"}
"""Field selectors. Most warning events of a member are about pods and nodes, and are not needed."""
_EVERYWHERE = _TRANSFORMS.keys() - set(DEVICES)
"""Kinds without which a member is not current, also where it refuses them."""
_UNVOUCHED = frozenset({EVENTS})
"""Kinds that no row represents: a member is current without them."""


def _apply_batches(sync: NodePodSync, nodes: Batch | None, pods: Batch | None) -> None:
    if nodes:
        if nodes.listed:
            sync.list_nodes(list(nodes.present.values()))
        else:
            for item in nodes.deleted:
                sync.ledger.lose_node(item.key[1])
            for node in nodes.present.values():
                sync.ledger.see_node(node)
    if pods:
        if pods.listed:
            sync.list_pods(list(pods.present.values()))
        else:
            for item in pods.deleted:
                sync.lose_pod(item.key)
            for pod in pods.present.values():
                sync.see_pod(pod)
