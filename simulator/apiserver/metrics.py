"""A simulated metrics server: ``metrics.k8s.io/v1beta1`` of nodes and pods, computed from the requests of running pods.

Nothing is measured. Each pod uses a constant share of its requests, so that repeated queries agree.
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
from simulator.apiserver.objects.rules import now
from simulator.apiserver.objects.store import Store

GROUP, VERSION = "metrics.k8s.io", "v1beta1"
_IDLE = {"cpu": 200, "memory": 2**30}
"""The base use of a node, in milli-CPU and bytes."""
_DEFAULT_REQUEST = {"cpu": "100m", "memory": "128Mi"}
_LEAST, _STEPS = 55, 40
"""A container uses between `_LEAST` and `_LEAST` + `_STEPS` percent of its requests."""


class Metrics(kinds.Kind):
    """The metrics of the nodes, or of the pods, of a store."""

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
    return [pod for pod in pods if (pod.get("status") or {}).get("phase") == "Running"]


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


def _head(kind: str, measured: Object, now: datetime) -> Object:
    metadata = {
        key: measured["metadata"][key] for key in ("name", "namespace", "labels") if measured["metadata"].get(key)
    }
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
    """The use of CPU and memory by each container."""
    uses = {}
    for container in (pod.get("spec") or {}).get("containers") or []:
        resources = container.get("resources") or {}
        requests: dict[str, Any] = {
            **_DEFAULT_REQUEST,
            **(resources.get("limits") or {}),
            **(resources.get("requests") or {}),
        }
        share = _LEAST + zlib.crc32(f"{pod['metadata']['uid']}/{container['name']}".encode()) % _STEPS
        amounts = {"cpu": quantities.milli(requests["cpu"]), "memory": quantities.units(requests["memory"])}
        uses[str(container["name"])] = {name: amount * share // 100 for name, amount in amounts.items()}
    return uses


def _written(usage: dict[str, int]) -> dict[str, str]:
    return {"cpu": f"{usage['cpu']}m", "memory": f"{usage['memory'] // 1024}Ki"}
