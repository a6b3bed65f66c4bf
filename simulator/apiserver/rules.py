"""What an API server fills in and keeps apart when an object is created or updated, kind by kind.

Only what clients rely on: identity, generation, the split between an object and its status. Where this and a real
kube-apiserver differ, the real one is right.
"""

import secrets
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from fleet.kube import names, shapes
from fleet.kube.discovery import Served
from fleet.kube.resources import NAMESPACES, NODES, PODS, SERVICES, Resource
from fleet.kube.status import KubeError, changed, conflict, invalid
from simulator.apiserver import defaults

Object = dict[str, Any]
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_FIXED = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")


def timestamp(now: datetime | None = None) -> str:
    return (now or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")


def checked(body: Any, resource: Resource, namespace: str) -> Object:
    """The request's body, if it is an object of the kind, the version and the namespace of the path."""
    message = f"{resource.kind} in version {resource.api_version!r} cannot be handled as a {resource.kind}"
    if fault := "the body must be an object" if body is None else shapes.fault(body, resource):
        raise KubeError(400, f"{message}: {fault}")
    body = {field: value for field, value in body.items() if value is not None}
    for field, wanted in (("kind", resource.kind), ("apiVersion", resource.api_version)):
        if body.get(field, wanted) != wanted:
            raise KubeError(400, f"the {field} of the body is {body[field]!r}, the path says {wanted!r}")
    metadata = {**body.get("metadata", {})}
    if resource.namespaced:
        if metadata.get("namespace", namespace) != namespace:
            raise KubeError(
                400, "the namespace of the provided object does not match the namespace sent on the request"
            )
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)
    return {**body, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}


def created(body: Object, served: Served, noted: Callable[[Object], Object] = lambda made: made) -> Object:
    """A new object: named, identified, defaulted, its status as servers start it; ``noted`` keeps book of its fields."""
    resource, metadata = served.resource, {**body["metadata"]}
    body = {**body, "metadata": metadata}
    if not metadata.get("name") and metadata.get("generateName"):
        suffix = "".join(secrets.choice(_ALPHABET) for _ in range(5))
        metadata["name"] = str(metadata["generateName"])[:58] + suffix
    _check_names(metadata, resource)
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


def _check_names(metadata: Object, resource: Resource) -> None:
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
    """``new`` as it may replace ``old``; raises Conflict when ``new`` was made from an older version."""
    resource, metadata = served.resource, new["metadata"]
    name = old["metadata"]["name"]
    if metadata.get("name", name) != name:
        raise KubeError(400, f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})")
    if metadata.get("resourceVersion") not in (None, "", old["metadata"]["resourceVersion"]):
        raise changed(resource, name)
    if (uid := metadata.get("uid")) not in (None, "", old["metadata"]["uid"]):
        message = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old['metadata']['uid']}"
        raise conflict(resource, name, message)
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
    _check_names(made["metadata"], resource)
    _check_finalizers(old["metadata"], made["metadata"], resource)
    if _has_generation(served):
        bumped = any(old.get(k) != made.get(k) for k in old.keys() | made.keys() if k not in ("metadata", "status"))
        made["metadata"]["generation"] = old["metadata"].get("generation", 1) + bumped
    return made
