"""Hands what a watch delivered about our objects to the handlers of the apps above (`fleet.services.members.event_handlers`).

Each call is a transaction of the handler's own, which locks the jobs it is about in their order.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from fleet.changes import events
from fleet.core.members import observed
from fleet.core.members.observed import Key, ObservedPod, ObservedRefusal
from fleet.db import isolation
from fleet.kube.resources import EVENTS, Resource
from fleet.member.watching import Changed, Delivery, Item, Listed
from fleet.models import Cluster
from fleet.services.clusters import clusters
from fleet.services.members import event_handlers
from fleet.services.watching.node_pod_sync import UNWRITABLE

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Batch:
    """The latest of each object of one kind, out of many deliveries."""

    listed: bool = False
    began: float = 0.0
    """When the list was requested, on the monotonic clock."""
    present: dict[Key, Any] = field(default_factory=dict)
    gone: list[Item] = field(default_factory=list)

    def add(self, delivery: Delivery) -> None:
        match delivery:
            case Listed(items=items, began=began):
                self.listed, self.began = True, began
                self.present = {item.key: item.value for item in items if item.value is not None}
            case Changed(item=item, gone=True):
                self.present.pop(item.key, None)
                self.gone.append(item)
            case Changed(item=Item(value=None)):
                pass
            case Changed(item=item):
                self.present[item.key] = item.value


Batches = dict[Resource, Batch]


def deliver(cluster_id: int, batches: Batches, pod_keys: set[event_handlers.Key], now: datetime) -> None:
    """Calls every handler with the batches of its kinds, then with the attempts whose pod rows have changed."""
    refusals = batches.get(EVENTS)
    for handler in event_handlers.registered():
        followed: set[event_handlers.Key] = set()
        for resource in handler.resources():
            batch = batches.get(resource)
            if batch is None:
                continue
            if batch.gone:
                _hand_over(handler.on_delete, cluster_id, resource, [item.value for item in batch.gone], now)
            if batch.present:
                followed |= _hand_over(handler.on_update, cluster_id, resource, list(batch.present.values()), now)
            if batch.listed:
                requested = now - timedelta(seconds=time.monotonic() - batch.began)
                handler.on_resync(cluster_id, resource, _keys(batch.present.values()), requested, now)
        if refusals and refusals.present:
            isolation.apart(
                "follow.refusals", list(refusals.present.values()), partial(_on_refusals, handler, cluster_id, now)
            )
            followed.clear()  # pods that were made since may have overtaken a refusal
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
    """Whether it may let a job start: room is known that was not before, a pod gives its node back, or an object says that what
    it runs has ended.
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
    """False too where the status cannot be read: that is recorded when it is written."""
    try:
        return event_handlers.has_ended(resource, manifest)
    except UNWRITABLE:
        return False


Report = Callable[[int, Resource, Sequence[dict[str, Any]], datetime], Collection[event_handlers.Key] | None]


def _hand_over(
    report: Report, cluster_id: int, resource: Resource, objects: list[dict[str, Any]], now: datetime
) -> set[event_handlers.Key]:
    """All at once; what cannot be handled is left out by itself, and recorded. What the handler returns."""

    def name_of(body: dict[str, Any]) -> str:
        return f"{resource.kind} {body['metadata'].get('namespace', '')}/{body['metadata']['name']}"

    def settle(body: dict[str, Any], error: Exception | None) -> None:
        if error is not None:
            record_unwritable(cluster_id, [name_of(body)], error, now)

    def hand_over(bodies: Sequence[dict[str, Any]]) -> set[event_handlers.Key]:
        return set(report(cluster_id, resource, bodies, now) or ())

    parts = isolation.apart("follow.objects", objects, hand_over, settle, id_of=name_of, savepoint=False)
    return set().union(*parts)


def record_unwritable(cluster_id: int, names: Sequence[str], error: Exception, now: datetime) -> None:
    """A line on the cluster's timeline about objects that no row can hold."""
    log.warning("objects left out", extra={"objects": names}, exc_info=error)
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    if cluster is not None:
        message = f"left as they were, because what the cluster says of them cannot be stored: {', '.join(names[:5])}"
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        events.record(clusters.change(cluster), "ObjectUnreadable", message + more, now, warning=True)


def _keys(objects: Iterable[dict[str, Any]]) -> set[event_handlers.Key]:
    marks = (observed.mark_of(body["metadata"].get("labels") or {}) for body in objects)
    return {(mark.job_uid, mark.attempt) for mark in marks if mark}
