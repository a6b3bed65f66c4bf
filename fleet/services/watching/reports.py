"""Passes what a watch delivered about propagated objects to the registered handlers (`fleet.services.members.event_handlers`).

Each handler runs in transactions of its own, in which it locks the jobs concerned in a fixed order.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from fleet.core.dra.inventory import DeviceInventory
from fleet.core.members import observed
from fleet.core.members.observed import Key, ObservedPod, ObservedRefusal
from fleet.db import isolation
from fleet.kube.resources import DEVICE_CLASSES, EVENTS, RESOURCE_SLICES, Resource
from fleet.member.watching import Changed, Delivery, Item, Listed
from fleet.models import Cluster
from fleet.services.clusters import object_events
from fleet.services.members import event_handlers
from fleet.services.watching.node_pod_sync import UNWRITABLE

log = logging.getLogger(__name__)
_MOST_RECORDED = 5
"""Of the objects of one batch that cannot be stored; the log has them all."""


@dataclass(slots=True)
class Batch:
    """The latest state of each object of one kind, merged from several deliveries."""

    listed: bool = False
    """`present` began with a complete list: an object that is not in it does not exist."""
    refused: bool = False
    """The member refuses the kind, and has shown nothing of it since."""
    expected: Collection[event_handlers.Key] = ()
    """The attempts whose copies were recorded as sent before the list was requested."""
    present: dict[Key, Any] = field(default_factory=dict)
    deleted: list[Item] = field(default_factory=list)

    def add(self, delivery: Delivery) -> None:
        match delivery:
            case Listed(items=items, expected=expected, refused=refused):
                self.listed, self.refused, self.expected = True, refused, expected or ()
                self.present = {item.key: item.value for item in items if item.value is not None}
            case Changed(item=item, gone=True):
                self.present.pop(item.key, None)
                self.deleted.append(item)
            case Changed(item=Item(value=None)):
                pass
            case Changed(item=item):
                self.present[item.key] = item.value


Batches = dict[Resource, Batch]


def update_devices(devices: DeviceInventory, resource: Resource, batch: Batch) -> None:
    """Takes slices, classes or claims, as `fleet.core.dra.inventory` reads them."""
    gone = [item.key for item in batch.deleted if item.key not in batch.present]
    if resource not in (RESOURCE_SLICES, DEVICE_CLASSES):
        devices.update_claims(batch.present, gone, listed=batch.listed)
        return
    present, names = {key[1]: value for key, value in batch.present.items()}, [name for _, name in gone]
    update = devices.update_slices if resource == RESOURCE_SLICES else devices.update_classes
    update(present, names, listed=batch.listed)


def deliver(cluster_id: int, batches: Batches, pod_keys: set[event_handlers.Key], now: datetime) -> None:
    """Calls every handler with the batches of its kinds, then with the attempts whose pod rows have changed."""
    refusals = batches.get(EVENTS)
    for handler in event_handlers.registered():
        followed: set[event_handlers.Key] = set()
        for resource in handler.resources():
            batch = batches.get(resource)
            if batch is None:
                continue
            if batch.deleted:
                _report(handler.on_delete, cluster_id, resource, [item.value for item in batch.deleted], now)
            if batch.present:
                followed |= _report(handler.on_update, cluster_id, resource, list(batch.present.values()), now)
            if batch.listed:
                missing = set(batch.expected) - _keys(batch.present.values())
                handler.on_resync(cluster_id, resource, missing, now)
        if refusals and refusals.present:
            isolation.apart(
                "follow.refusals", list(refusals.present.values()), partial(_on_refusals, handler, cluster_id, now)
            )
            # A refusal may be older than the pods: the job's state must be computed again from the pods that exist now.
            followed.clear()
        if rest := pod_keys - followed:
            changed = partial(_on_pods_changed, handler, cluster_id, now)
            isolation.apart("follow.pods", sorted(rest), changed, savepoint=False)


def _on_refusals(
    handler: event_handlers.EventHandler, cluster_id: int, now: datetime, refusals: Sequence[ObservedRefusal]
) -> None:
    handler.on_refusals(cluster_id, refusals, now)


def _on_pods_changed(
    handler: event_handlers.EventHandler, cluster_id: int, now: datetime, keys: Sequence[event_handlers.Key]
) -> None:
    handler.on_pods_changed(cluster_id, set(keys), now)


def is_urgent(delivery: Delivery) -> bool:
    """Whether the delivery may free capacity, so that it must not wait for the rest of a batch.

    That is the case for a list, a deletion, a pod that no longer counts on its node, and an object whose run has ended.
    """
    match delivery:
        case Changed(gone=False, item=Item(value=ObservedPod() as pod)):
            return bool(pod.node) and not pod.counts
        case Changed(gone=False, resource=resource, item=Item(value=dict() as manifest)):
            return _has_ended(resource, manifest)
        case Changed(gone=False):
            return False
    return True


def _has_ended(resource: Resource, manifest: dict[str, Any]) -> bool:
    """Whether the object's run has ended. False when its status cannot be read: the error is recorded when it is written."""
    try:
        return event_handlers.has_ended(resource, manifest)
    except UNWRITABLE:
        return False


Handler = Callable[[int, Resource, Sequence[dict[str, Any]], datetime], Collection[event_handlers.Key] | None]


def _report(
    handler: Handler, cluster_id: int, resource: Resource, objects: list[dict[str, Any]], now: datetime
) -> set[event_handlers.Key]:
    """Calls the handler with all objects, and returns the attempts that it reports as followed.

    When the handler fails, the batch is divided until only the objects that cause the failure are left out; these are recorded
    on the timeline of the cluster.
    """

    def name_of(body: dict[str, Any]) -> str:
        return f"{resource.kind} {body['metadata'].get('namespace', '')}/{body['metadata']['name']}"

    def settle(body: dict[str, Any], error: Exception | None) -> None:
        if error is not None:
            record_unwritable(cluster_id, [name_of(body)], error, now)

    def report(bodies: Sequence[dict[str, Any]]) -> set[event_handlers.Key]:
        return set(handler(cluster_id, resource, bodies, now) or ())

    parts = isolation.apart("follow.objects", objects, report, settle, id_of=name_of, savepoint=False)
    return set().union(*parts)


def record_unwritable(cluster_id: int, names: Sequence[str], error: Exception, now: datetime) -> None:
    """Logs objects that cannot be stored, and records events about them; ``names`` are ``KIND NAMESPACE/NAME``."""
    log.warning("objects cannot be stored", extra={"objects": names}, exc_info=error)
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    if cluster is not None:
        for named in names[:_MOST_RECORDED]:
            kind, _, path = named.partition(" ")
            namespace, _, name = path.rpartition("/")
            message = f"{named} is not updated, because the state that {cluster.name} reports of it cannot be stored"
            object_events.record(cluster, kind, namespace, name, "ObjectUnreadable", message, now)


def _keys(objects: Iterable[dict[str, Any]]) -> set[event_handlers.Key]:
    marks = (observed.mark_of(body["metadata"].get("labels") or {}) for body in objects)
    return {(mark.job_uid, mark.attempt) for mark in marks if mark}
