"""How an object goes: finalizers, graceful pods, what becomes of its dependents; and what is collected afterwards.

Stands in for the garbage collector and the namespace controller of a real cluster too, so "gone" means the same there.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from fleet.kube.resources import JOBS, PODS, Resource
from simulator.apiserver.rules import timestamp
from simulator.apiserver.store import Kind, Store

Object = dict[str, Any]
FOREGROUND = "foregroundDeletion"
_ENDED = ("Succeeded", "Failed")


def delete(store: Store, resource: Resource, found: Object, options: Object) -> Object | None:
    """Starts or finishes a deletion; the object as it still stands, or None when it is gone."""
    metadata = found["metadata"]
    policy = options.get("propagationPolicy") or ("Orphan" if options.get("orphanDependents") else "")
    policy = policy or ("Orphan" if _is(resource, JOBS) else "Background")
    kind = (resource.group, resource.plural)
    if policy == "Orphan":
        _orphan(store, metadata["uid"])
    finalizers = list(metadata.get("finalizers") or [])
    if policy == "Foreground" and store.owned_by(metadata["uid"]) and FOREGROUND not in finalizers:
        finalizers.append(FOREGROUND)
    grace = _grace(resource, found, options)
    if finalizers or grace:
        standing = _mark(store, kind, found, finalizers, grace)
        if FOREGROUND in finalizers:
            _delete_owned(store, metadata["uid"])
        return store.get(kind, metadata.get("namespace", ""), metadata["name"]) and standing
    remove(store, kind, found)
    return None


def _is(resource: Resource, other: Resource) -> bool:
    return (resource.group, resource.plural) == (other.group, other.plural)


def _grace(resource: Resource, found: Object, options: Object) -> int:
    """Seconds a pod on a node has left; everything else goes at once."""
    if not _is(resource, PODS) or not found["spec"].get("nodeName") or found.get("status", {}).get("phase") in _ENDED:
        return 0
    asked = options.get("gracePeriodSeconds")
    return int(found["spec"].get("terminationGracePeriodSeconds", 30) if asked is None else asked)


def _mark(store: Store, kind: Kind, found: Object, finalizers: list[str], grace: int) -> Object:
    metadata = {**found["metadata"]}
    if finalizers:
        metadata["finalizers"] = finalizers
    if "deletionTimestamp" not in metadata or grace < metadata.get("deletionGracePeriodSeconds", 0):
        metadata["deletionTimestamp"] = timestamp(datetime.now(UTC) + timedelta(seconds=grace))
        metadata["deletionGracePeriodSeconds"] = grace
    if metadata == found["metadata"]:
        return found
    return store.put(kind, {**found, "metadata": metadata})


def after_update(store: Store, kind: Kind, found: Object) -> bool:
    """Removes an object whose last finalizer has just gone; True when it did."""
    metadata = found["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return False
    if metadata.get("deletionGracePeriodSeconds"):
        return False
    remove(store, kind, found)
    return True


def remove(store: Store, kind: Kind, found: Object) -> None:
    """Takes the object away, then what it owned, then an owner that only waited for it."""
    metadata = found["metadata"]
    store.remove(kind, metadata.get("namespace", ""), metadata["name"])
    _delete_owned(store, metadata["uid"])
    for owner in metadata.get("ownerReferences") or []:
        _finish_foreground(store, metadata.get("namespace", ""), owner)


def empty_namespace(store: Store, name: str, resources: list[Resource]) -> None:
    """Deletes everything in a namespace, pods without grace: no process is left to wait for."""
    for resource in resources:
        if resource.namespaced:
            for found in list(store.of_kind((resource.group, resource.plural), name)):
                delete(store, resource, found, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})


def collect_orphan(store: Store, kind: Kind, namespace: str, name: str) -> None:
    """Deletes an object all of whose owners were gone before it was created."""
    found = store.get(kind, namespace, name)
    owners = (found or {}).get("metadata", {}).get("ownerReferences") or []
    if found and owners and not any(_owner(store, namespace, owner) for owner in owners):
        delete(store, Resource(kind[0], "", kind[1], found["kind"]), found, {"propagationPolicy": "Background"})


def _owner(store: Store, namespace: str, reference: Object) -> tuple[Kind, Object] | None:
    group = reference["apiVersion"].rpartition("/")[0]
    for kind in store.kinds():
        if kind[0] != group:
            continue
        for scope in (namespace, ""):
            found = store.get(kind, scope, reference["name"])
            if found is not None and found["metadata"]["uid"] == reference["uid"]:
                return kind, found
    return None


def _finish_foreground(store: Store, namespace: str, reference: Object) -> None:
    owner = _owner(store, namespace, reference)
    if owner is None or store.owned_by(reference["uid"]):
        return
    kind, found = owner
    finalizers = found["metadata"].get("finalizers") or []
    if FOREGROUND in finalizers:
        rest = [each for each in finalizers if each != FOREGROUND]
        metadata = {key: value for key, value in found["metadata"].items() if key != "finalizers"}
        stored = store.put(kind, {**found, "metadata": {**metadata, **({"finalizers": rest} if rest else {})}})
        after_update(store, kind, stored)


def _delete_owned(store: Store, uid: str) -> None:
    for kind, (namespace, name) in store.owned_by(uid):
        found = store.get(kind, namespace, name)
        if found is not None and "deletionTimestamp" not in found["metadata"]:
            delete(store, Resource(kind[0], "", kind[1], found["kind"]), found, {"propagationPolicy": "Background"})


def _orphan(store: Store, uid: str) -> None:
    for kind, (namespace, name) in store.owned_by(uid):
        found = store.get(kind, namespace, name)
        if found is not None:
            rest = [o for o in found["metadata"]["ownerReferences"] if o["uid"] != uid]
            store.put(kind, {**found, "metadata": {**found["metadata"], "ownerReferences": rest}})
