"""Deletes objects: finalizers, grace periods of pods, propagation to dependents, and garbage collection.

It also does the work of the garbage collector and the namespace controller of a real cluster.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from fleet.kube.resources import JOBS, PODS, Resource
from simulator.apiserver.objects.rules import timestamp
from simulator.apiserver.objects.store import Kind, Store

Object = dict[str, Any]
FOREGROUND = "foregroundDeletion"
_ENDED = ("Succeeded", "Failed")


def delete(store: Store, resource: Resource, current: Object, options: Object) -> Object | None:
    """Starts or finishes a deletion. Returns the object if it still exists, None if it was removed."""
    metadata = current["metadata"]
    policy = options.get("propagationPolicy") or ("Orphan" if options.get("orphanDependents") else "")
    policy = policy or ("Orphan" if _is(resource, JOBS) else "Background")
    kind = (resource.group, resource.plural)
    if policy == "Orphan":
        _orphan(store, metadata["uid"])
    finalizers = list(metadata.get("finalizers") or [])
    if policy == "Foreground" and store.owned_by(metadata["uid"]) and FOREGROUND not in finalizers:
        finalizers.append(FOREGROUND)
    grace = _grace(resource, current, options)
    if finalizers or grace:
        marked = _mark(store, kind, current, finalizers, grace)
        if FOREGROUND in finalizers:
            _delete_owned(store, metadata["uid"])
        return store.get(kind, metadata.get("namespace", ""), metadata["name"]) and marked
    remove(store, kind, current)
    return None


def _is(resource: Resource, other: Resource) -> bool:
    return (resource.group, resource.plural) == (other.group, other.plural)


def _grace(resource: Resource, current: Object, options: Object) -> int:
    """The grace period in seconds for a running pod. 0 for everything else."""
    if (
        not _is(resource, PODS)
        or not current["spec"].get("nodeName")
        or current.get("status", {}).get("phase") in _ENDED
    ):
        return 0
    requested_s = options.get("gracePeriodSeconds")
    return int(current["spec"].get("terminationGracePeriodSeconds", 30) if requested_s is None else requested_s)


def _mark(store: Store, kind: Kind, current: Object, finalizers: list[str], grace: int) -> Object:
    metadata = {**current["metadata"]}
    if finalizers:
        metadata["finalizers"] = finalizers
    if "deletionTimestamp" not in metadata or grace < metadata.get("deletionGracePeriodSeconds", 0):
        metadata["deletionTimestamp"] = timestamp(datetime.now(UTC) + timedelta(seconds=grace))
        metadata["deletionGracePeriodSeconds"] = grace
    if metadata == current["metadata"]:
        return current
    return store.put(kind, {**current, "metadata": metadata})


def after_update(store: Store, kind: Kind, current: Object) -> bool:
    """Removes an object that is being deleted if its last finalizer was removed. Returns whether it did."""
    metadata = current["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return False
    if metadata.get("deletionGracePeriodSeconds"):
        return False
    remove(store, kind, current)
    return True


def remove(store: Store, kind: Kind, current: Object) -> None:
    """Removes the object, then its dependents, then an owner whose foreground deletion waited only for it."""
    metadata = current["metadata"]
    store.remove(kind, metadata.get("namespace", ""), metadata["name"])
    _delete_owned(store, metadata["uid"])
    for owner in metadata.get("ownerReferences") or []:
        _finish_foreground(store, metadata.get("namespace", ""), owner)


def empty_namespace(store: Store, name: str, resources: list[Resource]) -> None:
    """Deletes all objects in a namespace, pods without a grace period."""
    for resource in resources:
        if resource.namespaced:
            for obj in list(store.of_kind((resource.group, resource.plural), name)):
                delete(store, resource, obj, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})


def collect_orphan(store: Store, kind: Kind, namespace: str, name: str) -> None:
    """Deletes an object all of whose owners were gone, or waited for their dependents to go, before it was created."""
    orphan = store.get(kind, namespace, name)
    owners = (orphan or {}).get("metadata", {}).get("ownerReferences") or []
    if orphan and owners and not any(_stays(store, namespace, owner) for owner in owners):
        delete(store, Resource(kind[0], "", kind[1], orphan["kind"]), orphan, {"propagationPolicy": "Background"})


def _stays(store: Store, namespace: str, reference: Object) -> bool:
    owner = _owner(store, namespace, reference)
    return owner is not None and FOREGROUND not in (owner[1]["metadata"].get("finalizers") or [])


def _owner(store: Store, namespace: str, reference: Object) -> tuple[Kind, Object] | None:
    group = reference["apiVersion"].rpartition("/")[0]
    for kind in store.kinds():
        if kind[0] != group:
            continue
        for scope in (namespace, ""):
            owner = store.get(kind, scope, reference["name"])
            if owner is not None and owner["metadata"]["uid"] == reference["uid"]:
                return kind, owner
    return None


def _finish_foreground(store: Store, namespace: str, reference: Object) -> None:
    owner = _owner(store, namespace, reference)
    if owner is None or store.owned_by(reference["uid"]):
        return
    kind, document = owner
    finalizers = document["metadata"].get("finalizers") or []
    if FOREGROUND in finalizers:
        rest = [each for each in finalizers if each != FOREGROUND]
        metadata = {key: value for key, value in document["metadata"].items() if key != "finalizers"}
        stored = store.put(kind, {**document, "metadata": {**metadata, **({"finalizers": rest} if rest else {})}})
        after_update(store, kind, stored)


def _delete_owned(store: Store, uid: str) -> None:
    for kind, (namespace, name) in store.owned_by(uid):
        dependent = store.get(kind, namespace, name)
        if dependent is not None and "deletionTimestamp" not in dependent["metadata"]:
            delete(
                store, Resource(kind[0], "", kind[1], dependent["kind"]), dependent, {"propagationPolicy": "Background"}
            )


def _orphan(store: Store, uid: str) -> None:
    for kind, (namespace, name) in store.owned_by(uid):
        dependent = store.get(kind, namespace, name)
        if dependent is not None:
            rest = [o for o in dependent["metadata"]["ownerReferences"] if o["uid"] != uid]
            store.put(kind, {**dependent, "metadata": {**dependent["metadata"], "ownerReferences": rest}})
