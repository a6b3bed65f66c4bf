"""The fields that an API server sets or protects when an object is created or updated.

Only what clients depend on: identity, generation, and the separation of an object and its status. If this differs from a real
kube-apiserver, this is the bug.
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
from simulator.apiserver.objects import defaults

Object = dict[str, Any]
_FIXED = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")


def now() -> datetime:
    return datetime.now(UTC)


def timestamp(moment: datetime | None = None) -> str:
    return (moment or now()).strftime("%Y-%m-%dT%H:%M:%SZ")


def created(body: Object, served: Served, manage: Callable[[Object], Object] = lambda new: new) -> Object:
    """The new object with uid, timestamps, defaults and initial status. ``manage`` returns it with its managedFields."""
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
    new = manage(body)
    # Fields without a manager come after the managed ones are recorded.
    defaults.complete(resource, new)
    return new


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
    added = [finalizer for finalizer in new.get("finalizers") or [] if finalizer not in (old.get("finalizers") or [])]
    if added and "deletionTimestamp" in old:
        message = f"Forbidden: no new finalizers can be added if the object is being deleted, found {added}"
        raise invalid(resource, old["name"], "metadata.finalizers", message)


def _has_generation(served: Served) -> bool:
    return served.resource.group != "" and "status" in served.subresources


def updated(old: Object, new: Object, served: Served, subresource: str) -> Object:
    """The object to store when ``new`` replaces ``old``: with the fields that a client cannot change."""
    resource, metadata = served.resource, new["metadata"]
    name = old["metadata"]["name"]
    if subresource == "status":
        result = {**old, "status": new.get("status", {})}
        fields = old["metadata"]
    else:
        result = {**new, "metadata": {**metadata, "name": name}}
        if resource == PODS:
            defaults.check_pod_update(old, result)
        else:
            defaults.apply(resource, result)
        fields = result["metadata"]
        if "status" in served.subresources:
            result.pop("status", None)
            if "status" in old:
                result["status"] = old["status"]
    result["metadata"] = {**fields, "name": name, **{f: old["metadata"][f] for f in _FIXED if f in old["metadata"]}}
    check_names(result["metadata"], resource)
    _check_finalizers(old["metadata"], result["metadata"], resource)
    if _has_generation(served):
        bumped = any(old.get(k) != result.get(k) for k in old.keys() | result.keys() if k not in ("metadata", "status"))
        result["metadata"]["generation"] = old["metadata"].get("generation", 1) + bumped
    return result
