"""What is shown of a pod beyond the columns of its row: labels, containers with their images and states, addresses.

Kept as JSON text in bounds, whatever a member answers. Nothing is decided by it. What changes from one moment to the next
without saying anything (a container that is about to be created) is left out, so that it causes no write.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from fleet.core import marks

Manifest = Mapping[str, Any]
Object = dict[str, Any]

LABELS, CONTAINERS = 64, 32
"""The most that is kept of each; labels in the order of their keys."""
_TEXT = 512
"""Characters of an image or a message."""
_KEY = 317
"""Characters of the longest key of a label that Kubernetes allows."""
_PASSING = frozenset({"ContainerCreating", "PodInitializing"})
_TIMES = ("startedAt", "finishedAt")


def read(manifest: Manifest) -> str:
    """The details of a pod as JSON; empty when there is nothing to keep."""
    meta, spec, status = (_mapping(manifest.get(part)) for part in ("metadata", "spec", "status"))
    details = {
        "labels": dict(_labels(_mapping(meta.get("labels")))),
        "containers": _containers(spec.get("containers"), status.get("containerStatuses")),
        "initContainers": _containers(spec.get("initContainers"), status.get("initContainerStatuses")),
        "podIP": _text(status.get("podIP")),
        "hostIP": _text(status.get("hostIP")),
        "restartPolicy": _text(spec.get("restartPolicy")),
    }
    known = {key: value for key, value in details.items() if value}
    return _written(known) if known else ""


def fragment_of(key: str, value: str) -> str:
    """A part of the text of every pod with this label; others may have it too."""
    return _written({key: value})[1:-1]


def parse(text: str) -> Object:
    """The details again; empty ones for a row that an older version wrote."""
    details: Object = json.loads(text) if text else {}
    return details


def _labels(labels: Manifest) -> Iterator[tuple[str, str]]:
    """Without the proof that the pod is ours, which is nothing to select by."""
    sound = (key for key, value in labels.items() if isinstance(key, str) and isinstance(value, str))
    for key in sorted(key for key in sound if key != marks.POD_MARK and len(key) <= _KEY)[:LABELS]:
        yield key, labels[key][:63]


def _containers(containers: object, statuses: object) -> list[Object]:
    known = {_text(status.get("name")): status for status in _mappings(statuses)}
    return [_container(spec, known.get(_text(spec.get("name")), {})) for spec in _mappings(containers)[:CONTAINERS]]


def _container(spec: Manifest, status: Manifest) -> Object:
    restarts = status.get("restartCount")
    container = {
        "name": _text(spec.get("name")),
        "image": _text(spec.get("image")),
        "resources": dict(_resources(_mapping(spec.get("resources")))),
        "ready": status.get("ready") is True,
        "restartCount": restarts if isinstance(restarts, int) else 0,
        "state": _state(status.get("state")),
        "lastState": _state(status.get("lastState")),
    }
    return {key: value for key, value in container.items() if value}


def _resources(resources: Manifest) -> Iterator[tuple[str, Object]]:
    for part in ("requests", "limits"):
        if amounts := _mapping(resources.get(part)):
            yield part, {str(name)[:_KEY]: _text(amount) for name, amount in list(amounts.items())[:CONTAINERS]}


def _state(state: object) -> Object:
    for name, details in _mapping(state).items():
        if name in ("running", "waiting", "terminated") and isinstance(details, Mapping):
            shown = {key: _text(details.get(key)) for key in ("reason", "message", *_TIMES) if details.get(key)}
            if name == "waiting" and shown.get("reason") in _PASSING:
                return {}
            code = details.get("exitCode")
            return {name: {**shown, **({"exitCode": code} if name == "terminated" and isinstance(code, int) else {})}}
    return {}


def _written(value: Object) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def _mapping(value: object) -> Manifest:
    return value if isinstance(value, Mapping) else {}


def _mappings(values: object) -> list[Manifest]:
    return [value for value in values if isinstance(value, Mapping)] if isinstance(values, list) else []


def _text(value: object) -> str:
    return str(value)[:_TEXT] if isinstance(value, str | int | float) else ""
