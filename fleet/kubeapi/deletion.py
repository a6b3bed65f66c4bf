"""Deletes: one object under its preconditions, or all that a selector takes. Each is handed to its kind, which knows how."""

from typing import Any

from fleet.kube import shapes, status
from fleet.kube.resources import Resource
from fleet.kube.status import KubeError
from fleet.kubeapi.kinds import Kind, Object, Write

_PROPAGATION = ("Background", "Foreground", "Orphan")


def options(body: Any) -> Object:
    """What the caller wants of the delete, checked; how it spreads means nothing here and is only held to the known words."""
    wrong = shapes.mismatch(body, shapes.DELETE_OPTIONS)
    if wrong:
        raise KubeError(400, f"DeleteOptions: {wrong}")
    policy = body.get("propagationPolicy")
    if policy and policy not in _PROPAGATION:
        known = ", ".join(f'"{each}"' for each in _PROPAGATION)
        message = f'propagationPolicy: Unsupported value: "{policy}": supported values: {known}'
        raise KubeError(422, f'DeleteOptions.meta.k8s.io "" is invalid: {message}')
    return dict(body)


def delete(kind: Kind, current: Object, wanted: Object, write: Write) -> bool:
    """True when it is gone already."""
    resource, metadata = kind.served.resource, current["metadata"]
    _check(resource, metadata, wanted.get("preconditions") or {})
    return kind.delete(metadata["name"], write)


def gone(resource: Resource, current: Object) -> Object:
    return status.success(resource, current["metadata"]["name"], current["metadata"]["uid"])


def _check(resource: Resource, metadata: Object, wanted: Object) -> None:
    for field, word in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        if wanted.get(field) not in (None, metadata[field]):
            why = f"Precondition failed: {word} in precondition: {wanted[field]}, {word} in object meta: {metadata[field]}"
            raise status.conflict(resource, metadata["name"], why)
