"""Checks the JSON types of the fields that the product reads, so that code can rely on the types of stored objects.

A shape is a type, ``QUANTITY``, ``Each(shape)`` for a list, ``Keyed(shape)`` for a map, or a dict of fields. Fields that a
shape does not name are not checked, and null counts as absent except in a list. Values are not checked here, only their types.
"""

from dataclasses import dataclass
from typing import Any, Final

from fleet.kube import quantities, resources
from fleet.kube.resources import Resource

Shape = Any


@dataclass(frozen=True, slots=True)
class Each:
    """A list whose entries have this shape."""

    shape: Shape


@dataclass(frozen=True, slots=True)
class Keyed:
    """A map whose values have this shape."""

    shape: Shape


QUANTITY: Final = object()
_WORDS: dict[Shape, str] = {str: "text", int: "a whole number", bool: "true or false"}
_TEXTS = Keyed(str)
_AMOUNTS = Keyed(QUANTITY)
_OBJECTS = Each({})
_CONDITIONS = Each({"type": str, "status": str})

OWNER: Shape = {"apiVersion": str, "kind": str, "name": str, "uid": str}
METADATA: Shape = {
    **dict.fromkeys(("name", "generateName", "namespace", "uid", "resourceVersion"), str),
    **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), str),
    "labels": _TEXTS,
    "annotations": _TEXTS,
    "finalizers": Each(str),
    "ownerReferences": Each(OWNER),
    "managedFields": _OBJECTS,
}
_CONTAINER: Shape = {
    "name": str,
    "image": str,
    "command": Each(str),
    "args": Each(str),
    "env": Each({"name": str, "value": str}),
    "ports": _OBJECTS,
    "volumeMounts": _OBJECTS,
    "resources": {"limits": _AMOUNTS, "requests": _AMOUNTS},
}
_POD_SPEC: Shape = {
    **dict.fromkeys(("nodeName", "restartPolicy", "schedulerName", "priorityClassName", "serviceAccountName"), str),
    **dict.fromkeys(("terminationGracePeriodSeconds", "activeDeadlineSeconds", "priority"), int),
    "containers": Each(_CONTAINER),
    "initContainers": Each(_CONTAINER),
    "nodeSelector": _TEXTS,
    "tolerations": _OBJECTS,
    "volumes": _OBJECTS,
    "overhead": _AMOUNTS,
}
_TEMPLATE: Shape = {"metadata": METADATA, "spec": _POD_SPEC}
_VERSION: Shape = {
    **{"name": str, "served": bool, "storage": bool, "schema": {}},
    "subresources": {"status": {}, "scale": {}},
    "additionalPrinterColumns": Each(dict.fromkeys(("name", "type", "jsonPath", "format", "description"), str)),
}
_NAMES: Shape = {
    **dict.fromkeys(("plural", "singular", "kind", "listKind"), str),
    **dict.fromkeys(("shortNames", "categories"), Each(str)),
}
_BY_KIND: dict[Resource, Shape] = {
    resources.PODS: {
        "spec": _POD_SPEC,
        "status": {"phase": str, "conditions": _CONDITIONS, "containerStatuses": _OBJECTS},
    },
    resources.JOBS: {
        "spec": {"suspend": bool, "selector": {"matchLabels": _TEXTS}, "template": _TEMPLATE},
        "status": {"conditions": _CONDITIONS},
    },
    resources.NODES: {
        "spec": {"taints": Each({"key": str, "value": str, "effect": str}), "unschedulable": bool},
        "status": {"capacity": _AMOUNTS, "allocatable": _AMOUNTS, "conditions": _CONDITIONS, "addresses": _OBJECTS},
    },
    resources.SERVICES: {"spec": {"ports": Each({"port": int}), "selector": _TEXTS, "clusterIP": str}, "status": {}},
    resources.NAMESPACES: {"spec": {"finalizers": Each(str)}, "status": {"phase": str}},
    resources.CONFIG_MAPS: {"data": _TEXTS, "binaryData": _TEXTS},
    resources.SECRETS: {"data": _TEXTS, "stringData": _TEXTS, "type": str},
    resources.EVENTS: {"involvedObject": {}, "source": {}, "reason": str, "message": str},
    resources.SERVICE_ACCOUNTS: {"secrets": _OBJECTS, "imagePullSecrets": _OBJECTS},
    resources.VOLUME_CLAIMS: {"spec": {}, "status": {}},
    resources.CRDS: {"spec": {"group": str, "scope": str, "names": _NAMES, "versions": Each(_VERSION)}, "status": {}},
}
BINDING: Shape = {"target": {"name": str}}
DELETE_OPTIONS: Shape = {
    "preconditions": {"uid": str, "resourceVersion": str},
    "gracePeriodSeconds": int,
    "propagationPolicy": str,
    "orphanDependents": bool,
}


def fault(body: object, resource: Resource) -> str:
    """The first field with a wrong type, as "spec.containers[0].name must be text". Empty if there is none."""
    return mismatch(body, {"metadata": METADATA, **_BY_KIND.get(resource, {})})


def mismatch(value: object, shape: Shape, path: str = "") -> str:
    """Like `fault`, for any shape. ``path`` is the name of the value itself."""
    if value is None:
        return ""
    if isinstance(shape, dict):
        return _in_fields(value, shape, path)
    if isinstance(shape, Each):
        return _in_list(value, shape.shape, path)
    if isinstance(shape, Keyed):
        return _in_map(value, shape.shape, path)
    if shape is QUANTITY:
        return _in_quantity(value, path)
    if not isinstance(value, shape) or (shape is int and isinstance(value, bool)):
        return f"{path} must be {_WORDS[shape]}"
    return ""


def _in_fields(value: object, shape: dict[str, Shape], path: str) -> str:
    if not isinstance(value, dict):
        return f"{path or 'the body'} must be an object"
    for field, expected in shape.items():
        if field in value and (fault := mismatch(value[field], expected, f"{path}.{field}" if path else field)):
            return fault
    return ""


def _in_list(value: object, shape: Shape, path: str) -> str:
    if not isinstance(value, list):
        return f"{path} must be a list"
    for index, entry in enumerate(value):
        place = f"{path}[{index}]"
        if fault := f"{place} must not be null" if entry is None else mismatch(entry, shape, place):
            return fault
    return ""


def _in_map(value: object, shape: Shape, path: str) -> str:
    if not isinstance(value, dict):
        return f"{path} must be an object"
    return next(filter(None, (mismatch(entry, shape, f"{path}[{key}]") for key, entry in value.items())), "")


def _in_quantity(value: object, path: str) -> str:
    try:
        quantities.parse(value)
    except quantities.QuantityError as e:
        return f"{path}: {e}"
    return ""
