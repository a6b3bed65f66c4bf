"""What is shown of a pod beyond the columns of its row: labels, containers with their images and states, addresses.

Kept as JSON text in bounds and of the types that Kubernetes gives them, whatever a member answers: a client that is typed
gives up a whole list for one time it cannot read. Nothing is decided by it. What changes from one moment to the next without
saying anything (a container that is about to be created) is left out, so that it causes no write.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from fleet.core.members import marks
from fleet.core.members.typed_values import is_quantity, mapping, mappings, moment, number, text

Manifest = Mapping[str, Any]
Object = dict[str, Any]

LABELS, CONTAINERS = 64, 32
"""The most that is kept of each; labels in the order of their keys."""
_KEY = 317
"""Characters of the longest key of a label that Kubernetes allows."""
_PASSING = frozenset({"ContainerCreating", "PodInitializing"})


def read(manifest: Manifest) -> str:
    """The details of a pod as JSON; empty when there is nothing to keep."""
    meta, spec, status = (mapping(manifest.get(part)) for part in ("metadata", "spec", "status"))
    details = {
        "labels": dict(_labels(mapping(meta.get("labels")))),
        "containers": _containers(spec.get("containers"), status.get("containerStatuses")),
        "initContainers": _containers(spec.get("initContainers"), status.get("initContainerStatuses")),
        "podIP": text(status.get("podIP")),
        "hostIP": text(status.get("hostIP")),
        "restartPolicy": text(spec.get("restartPolicy")),
    }
    known = {key: value for key, value in details.items() if value}
    return _written(known) if known else ""


def fragment_of(key: str, value: str) -> str:
    """A part of the text of every pod with this label; others may have it too."""
    return _written({key: value})[1:-1]


def parse(kept: str) -> Object:
    """The details again; empty ones for a row that an older version wrote."""
    details: Object = json.loads(kept) if kept else {}
    return details


def _labels(labels: Manifest) -> Iterator[tuple[str, str]]:
    """Without the proof that the pod is ours, which is nothing to select by."""
    sound = (key for key, value in labels.items() if isinstance(key, str) and isinstance(value, str))
    for key in sorted(key for key in sound if key != marks.POD_MARK and len(key) <= _KEY)[:LABELS]:
        yield key, labels[key][:63]


def _containers(containers: object, statuses: object) -> list[Object]:
    known = {text(status.get("name")): status for status in mappings(statuses)}
    return [_container(spec, known.get(text(spec.get("name")), {})) for spec in mappings(containers)[:CONTAINERS]]


def _container(spec: Manifest, status: Manifest) -> Object:
    container = {
        "name": text(spec.get("name")),
        "image": text(spec.get("image")),
        "resources": dict(_resources(mapping(spec.get("resources")))),
        "restartPolicy": text(spec.get("restartPolicy")),
        "ready": status.get("ready") is True,
        "restartCount": number(status.get("restartCount")),
        "state": _state(status.get("state")),
        "lastState": _state(status.get("lastState")),
    }
    return {key: value for key, value in container.items() if value}


def _resources(resources: Manifest) -> Iterator[tuple[str, Object]]:
    for part in ("requests", "limits"):
        amounts = list(mapping(resources.get(part)).items())[:CONTAINERS]
        if sound := {str(name)[:_KEY]: str(amount) for name, amount in amounts if is_quantity(amount)}:
            yield part, sound


def _state(state: object) -> Object:
    for name, details in mapping(state).items():
        if name in ("running", "waiting", "terminated") and isinstance(details, Mapping):
            words = {key: text(details.get(key)) for key in ("reason", "message")}
            if name == "waiting" and words["reason"] in _PASSING:
                return {}
            times = {key: moment(details.get(key)) for key in ("startedAt", "finishedAt")}
            code = {"exitCode": number(details.get("exitCode"))} if name == "terminated" else {}
            return {name: {key: value for key, value in (words | times).items() if value} | code}
    return {}


def _written(value: Object) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)
