"""Accessors for Kubernetes objects as plain dicts: names, owners, phases, conditions. No I/O."""

from typing import Any

Object = dict[str, Any]

FINISHED = ("Succeeded", "Failed")


def name_of(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def namespace_of(obj: Object) -> str:
    return str(obj["metadata"].get("namespace") or "")


def key_of(obj: Object) -> str:
    """``namespace/name``, the key in caches and queues."""
    return f"{namespace_of(obj)}/{name_of(obj)}"


def split_key(key: str) -> tuple[str, str]:
    namespace, _, name = key.partition("/")
    return namespace, name


def uid_of(obj: Object) -> str:
    return str(obj["metadata"].get("uid") or "")


def version_of(obj: Object) -> int:
    return int(obj["metadata"].get("resourceVersion") or 0)


def labels_of(obj: Object) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def annotations_of(obj: Object) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}


def controller_of(obj: Object) -> Object | None:
    """The owner reference marked as controller."""
    for reference in obj["metadata"].get("ownerReferences") or []:
        if reference.get("controller"):
            return dict(reference)
    return None


def owner_of(obj: Object) -> Object | None:
    """The owner marked as controller, else the first owner, because some masters own pods without being their controller."""
    references = obj["metadata"].get("ownerReferences") or [None]
    return controller_of(obj) or (dict(references[0]) if references[0] else None)


def owner_reference(owner: Object, api_version: str, kind: str) -> Object:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_leaving(obj: Object) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))


def phase_of(pod: Object) -> str:
    return str((pod.get("status") or {}).get("phase") or "Pending")


def node_of(pod: Object) -> str:
    return str((pod.get("spec") or {}).get("nodeName") or "")


def is_finished(pod: Object) -> bool:
    return phase_of(pod) in FINISHED


def condition(obj: Object, kind: str) -> Object | None:
    for entry in (obj.get("status") or {}).get("conditions") or []:
        if entry.get("type") == kind:
            return dict(entry)
    return None


def is_true(obj: Object, kind: str) -> bool:
    entry = condition(obj, kind)
    return entry is not None and entry.get("status") == "True"


def exit_code(pod: Object) -> int | None:
    """The first nonzero exit code of the pod's containers, else 0 if one has ended. None if none has."""
    codes = [
        int(entry["state"]["terminated"].get("exitCode") or 0)
        for entry in (pod.get("status") or {}).get("containerStatuses") or []
        if (entry.get("state") or {}).get("terminated")
    ]
    return next((code for code in codes if code), codes[0] if codes else None)


def restarts_of(pod: Object) -> int:
    return sum(int(c.get("restartCount") or 0) for c in (pod.get("status") or {}).get("containerStatuses") or [])
