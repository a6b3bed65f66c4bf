"""What an API server fills in and keeps apart when an object is created or updated, kind by kind.

Only what clients rely on: identity, generation, the split between an object and its status. Where this and a real
kube-apiserver differ, the real one is right.
"""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from fleet.kube import names
from fleet.kube.discovery import Served
from fleet.kube.requests.status import invalid
from fleet.kube.resources import NAMESPACES, NODES, PODS, SERVICES, Resource
from fleet.kube.schema import shapes
from simulator.apiserver import defaults

Object = dict[str, Any]
_FIXED = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")


def now() -> datetime:
    return datetime.now(UTC)


def timestamp(moment: datetime | None = None) -> str:
    return (moment or now()).strftime("%Y-%m-%dT%H:%M:%SZ")


def created(body: Object, served: Served, noted: Callable[[Object], Object] = lambda made: made) -> Object:
    """A new object: named, identified, defaulted, its status as servers start it; ``noted`` keeps book of its fields."""
    resource, metadata = served.resource, {**body["metadata"]}
    body = {**body, "metadata": metadata}
    metadata |= {"uid": str(uuid.uuid4()), "creationTimestamp": timestamp()}
    for field in ("resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds"):
        metadata.pop(field, None)
    if "status" in served.subresources and resource.plural != NODES.plural:
        body.pop("status", None)
    if _has_generation(served):
        metadata["generation"] = 1
    defaults.apply(resource, body)
    made = noted(body)
    defaults.complete(resource, made)
    return made


def check_names(metadata: Object, resource: Resource) -> None:
    name = metadata.get("name")
    strict = resource in (NAMESPACES, SERVICES)
    if fault := (names.label_fault(name) if strict else names.subdomain_fault(name)):
        message = (
            "Required value: name or generateName is required" if not name else f'Invalid value: "{name}": {fault}'
        )
        raise invalid(resource, str(name or ""), "metadata.name", message)
    for key, value in (metadata.get("labels") or {}).items():
        if fault := names.pair_fault(key, value):
            raise invalid(resource, str(name), "metadata.labels", f'Invalid value: "{value}": {fault}')
    for index, owner in enumerate(metadata.get("ownerReferences") or []):
        for field in shapes.OWNER:
            if not owner.get(field):
                message = 'Invalid value: "": must not be empty'
                raise invalid(resource, str(name), f"metadata.ownerReferences[{index}].{field}", message)


def _check_finalizers(old: Object, new: Object, resource: Resource) -> None:
    added = [each for each in new.get("finalizers") or [] if each not in (old.get("finalizers") or [])]
    if added and "deletionTimestamp" in old:
        message = f"Forbidden: no new finalizers can be added if the object is being deleted, found {added}"
        raise invalid(resource, old["name"], "metadata.finalizers", message)


def _has_generation(served: Served) -> bool:
    return served.resource.group != "" and "status" in served.subresources


def updated(old: Object, new: Object, served: Served, subresource: str) -> Object:
    """``new`` as it may replace ``old``."""
    resource, metadata = served.resource, new["metadata"]
    name = old["metadata"]["name"]
    if subresource == "status":
        made = {**old, "status": new.get("status", {})}
        kept = old["metadata"]
    else:
        made = {**new, "metadata": {**metadata, "name": name}}
        if resource == PODS:
            defaults.check_pod_update(old, made)
        else:
            defaults.apply(resource, made)
        kept = made["metadata"]
        if "status" in served.subresources:
            made.pop("status", None)
            if "status" in old:
                made["status"] = old["status"]
    made["metadata"] = {**kept, "name": name, **{f: old["metadata"][f] for f in _FIXED if f in old["metadata"]}}
    check_names(made["metadata"], resource)
    _check_finalizers(old["metadata"], made["metadata"], resource)
    if _has_generation(served):
        bumped = any(old.get(k) != made.get(k) for k in old.keys() | made.keys() if k not in ("metadata", "status"))
        made["metadata"]["generation"] = old["metadata"].get("generation", 1) + bumped
    return made
