"""The ``scale`` subresource: reads and writes the replica counts at the field paths that the kind's definition names."""

from collections.abc import Mapping
from typing import Any, Final

from fleet.kube.requests.status import KubeError, invalid
from fleet.kube.resources import Resource

Object = dict[str, Any]
SCALE: Final = Resource("autoscaling", "v1", "scales", "Scale")


def scale_of(paths: Mapping[str, str], current: Object) -> Object:
    """The object's Scale, as ``autoscaling/v1``."""
    status: Object = {"replicas": _at(current, paths.get("statusReplicasPath", "")) or 0}
    if selector := _at(current, paths.get("labelSelectorPath", "")):
        status["selector"] = selector
    wanted = _at(current, paths["specReplicasPath"])
    names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": SCALE.kind,
        "apiVersion": SCALE.api_version,
        "metadata": {name: current["metadata"][name] for name in names if name in current["metadata"]},
        "spec": {} if wanted is None else {"replicas": wanted},
        "status": status,
    }


def scaled(paths: Mapping[str, str], current: Object, wanted: Any, resource: Resource) -> Object:
    """The object with the replicas of the Scale ``wanted``. If the Scale has a resourceVersion, the object gets it."""
    if not isinstance(wanted, dict) or wanted.get("kind", SCALE.kind) != SCALE.kind:
        raise KubeError(400, "the object provided is unrecognized: it is not a Scale")
    spec, metadata = wanted.get("spec") or {}, wanted.get("metadata") or {}
    if not isinstance(spec, dict) or not isinstance(metadata, dict):
        raise KubeError(400, "a Scale has a spec with replicas, and metadata")
    replicas, name = spec.get("replicas", 0), current["metadata"]["name"]
    if metadata.get("name", name) != name:
        message = f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})"
        raise KubeError(400, message)
    if isinstance(replicas, bool) or not isinstance(replicas, int):
        raise KubeError(400, "Scale: spec.replicas must be a whole number")
    if replicas < 0:
        raise invalid(
            resource, name, paths["specReplicasPath"], f"Invalid value: {replicas}: should be a non-negative integer"
        )
    version = metadata.get("resourceVersion") or current["metadata"].get("resourceVersion")
    document = _put(current, _steps(paths["specReplicasPath"]), replicas)
    return {**document, "metadata": {**document["metadata"], "resourceVersion": version}}


def _steps(path: str) -> list[str]:
    return [step for step in path.split(".") if step]


def _at(value: Any, path: str) -> Any:
    for step in _steps(path):
        value = value.get(step) if isinstance(value, dict) else None
    return value if path else None


def _put(current: Any, steps: list[str], value: int) -> Object:
    inside = current if isinstance(current, dict) else {}
    return {**inside, steps[0]: value if len(steps) == 1 else _put(inside.get(steps[0]), steps[1:], value)}
