"""The ``scale`` of a kind: how many there are to be, read from and written to the places a definition names."""

from collections.abc import Mapping
from typing import Any, Final

from fleet.kube.requests.status import KubeError, invalid
from fleet.kube.resources import Resource

Object = dict[str, Any]
SCALE: Final = Resource("autoscaling", "v1", "scales", "Scale")


def scale_of(paths: Mapping[str, str], found: Object) -> Object:
    """As ``autoscaling/v1``."""
    status: Object = {"replicas": _at(found, paths.get("statusReplicasPath", "")) or 0}
    if selector := _at(found, paths.get("labelSelectorPath", "")):
        status["selector"] = selector
    wanted = _at(found, paths["specReplicasPath"])
    names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": SCALE.kind,
        "apiVersion": SCALE.api_version,
        "metadata": {name: found["metadata"][name] for name in names if name in found["metadata"]},
        "spec": {} if wanted is None else {"replicas": wanted},
        "status": status,
    }


def scaled(paths: Mapping[str, str], found: Object, wanted: Any, resource: Resource) -> Object:
    """The object, of that resource, as a Scale wants it; under the version the Scale names, if it names one."""
    if not isinstance(wanted, dict) or wanted.get("kind", SCALE.kind) != SCALE.kind:
        raise KubeError(400, "the object provided is unrecognized: it is no Scale")
    spec, metadata = wanted.get("spec") or {}, wanted.get("metadata") or {}
    if not isinstance(spec, dict) or not isinstance(metadata, dict):
        raise KubeError(400, "a Scale has a spec with replicas, and metadata")
    replicas, name = spec.get("replicas", 0), found["metadata"]["name"]
    if metadata.get("name", name) != name:
        message = f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})"
        raise KubeError(400, message)
    if isinstance(replicas, bool) or not isinstance(replicas, int):
        raise KubeError(400, "Scale: spec.replicas must be a whole number")
    if replicas < 0:
        raise invalid(
            resource, name, paths["specReplicasPath"], f"Invalid value: {replicas}: should be a non-negative integer"
        )
    version = metadata.get("resourceVersion") or found["metadata"].get("resourceVersion")
    made = _put(found, _steps(paths["specReplicasPath"]), replicas)
    return {**made, "metadata": {**made["metadata"], "resourceVersion": version}}


def _steps(path: str) -> list[str]:
    return [step for step in path.split(".") if step]


def _at(found: Any, path: str) -> Any:
    for step in _steps(path):
        found = found.get(step) if isinstance(found, dict) else None
    return found if path else None


def _put(found: Any, steps: list[str], value: int) -> Object:
    inside = found if isinstance(found, dict) else {}
    return {**inside, steps[0]: value if len(steps) == 1 else _put(inside.get(steps[0]), steps[1:], value)}
