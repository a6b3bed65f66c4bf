"""What a metrics server would say: ``metrics.k8s.io/v1beta1`` of nodes and pods, made up from what running pods ask for.

The same pod uses the same share of what it asks for as long as it lives, so that two looks agree. Nothing is measured.
"""

import zlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from fleet.kube import quantities
from fleet.kube.discovery import Served
from fleet.kube.resources import NODES, PODS, Resource
from fleet.kube.server import kinds
from fleet.kube.server.kinds import Exact, Key, Namespaces, Object
from simulator.apiserver.rules import now
from simulator.apiserver.store import Store

GROUP, VERSION = "metrics.k8s.io", "v1beta1"
_IDLE = {"cpu": 200, "memory": 2**30}
"""What a node uses by itself, in thousandths of a core and bytes."""
_ASKED_NOTHING = {"cpu": "100m", "memory": "128Mi"}
_LEAST, _STEPS = 55, 40
"""Between so many hundredths of what it asks for and so many more is what a container uses."""


class Metrics(kinds.Kind):
    """What the nodes, or the pods, of a store use."""

    verbs = ("get", "list")

    def __init__(self, store: Store, resource: Resource) -> None:
        self._store, self._measured = store, resource
        kind, namespaced = f"{resource.kind}Metrics", resource.namespaced
        self.served = Served(Resource(GROUP, VERSION, resource.plural, kind, namespaced=namespaced))

    def objects(self, namespaces: Namespaces, after: Key | None, exact: Exact) -> Iterator[Object]:
        stored = self._store.at(self._store.version, ("", self._measured.plural), namespaces, after)
        if self._measured == PODS:
            return (_pod(pod, now()) for pod in _running(stored))
        return (_node(node, self._store, now()) for node in stored)


def measured(store: Store) -> tuple[Metrics, Metrics]:
    return Metrics(store, NODES), Metrics(store, PODS)


def _running(pods: Iterable[Object]) -> list[Object]:
    return [each for each in pods if (each.get("status") or {}).get("phase") == "Running"]


def _pod(pod: Object, now: datetime) -> Object:
    uses = _uses(pod)
    containers = [{"name": name, "usage": _written(usage)} for name, usage in uses.items()]
    return {**_head("PodMetrics", pod, now), "containers": containers}


def _node(node: Object, store: Store, now: datetime) -> Object:
    total = dict(_IDLE)
    for pod in _running(store.of_kind((PODS.group, PODS.plural))):
        if (pod.get("spec") or {}).get("nodeName") == node["metadata"]["name"]:
            for usage in _uses(pod).values():
                total = {name: amount + usage[name] for name, amount in total.items()}
    return {**_head("NodeMetrics", node, now), "usage": _written(total)}


def _head(kind: str, found: Object, now: datetime) -> Object:
    metadata = {key: found["metadata"][key] for key in ("name", "namespace", "labels") if found["metadata"].get(key)}
    moment = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    metadata["creationTimestamp"] = moment
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": kind,
        "metadata": metadata,
        "timestamp": moment,
        "window": "30s",
    }


def _uses(pod: Object) -> dict[str, dict[str, int]]:
    found = {}
    for each in (pod.get("spec") or {}).get("containers") or []:
        resources = each.get("resources") or {}
        asked: dict[str, Any] = {
            **_ASKED_NOTHING,
            **(resources.get("limits") or {}),
            **(resources.get("requests") or {}),
        }
        share = _LEAST + zlib.crc32(f"{pod['metadata']['uid']}/{each['name']}".encode()) % _STEPS
        amounts = {"cpu": quantities.milli(asked["cpu"]), "memory": quantities.units(asked["memory"])}
        found[str(each["name"])] = {name: amount * share // 100 for name, amount in amounts.items()}
    return found


def _written(usage: dict[str, int]) -> dict[str, str]:
    return {"cpu": f"{usage['cpu']}m", "memory": f"{usage['memory'] // 1024}Ki"}
