"""What a metrics server would say: ``metrics.k8s.io/v1beta1`` of nodes and pods, made up from what running pods ask for.

The same pod uses the same share of what it asks for as long as it lives, so that two looks agree. Nothing is measured.
"""

import zlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from fleet.kube import discovery, quantities, status
from fleet.kube.discovery import Served
from fleet.kube.resources import NODES, PODS, Resource
from simulator.apiserver.lists import Wanted
from simulator.apiserver.store import Object, Store

GROUP, VERSION = "metrics.k8s.io", "v1beta1"
ROOT = f"/apis/{GROUP}/{VERSION}/"
SERVED = (
    Served(Resource(GROUP, VERSION, "nodes", "NodeMetrics", namespaced=False)),
    Served(Resource(GROUP, VERSION, "pods", "PodMetrics")),
)
VERBS = ("get", "list")
_IDLE = {"cpu": 200, "memory": 2**30}
"""What a node uses by itself, in thousandths of a core and bytes."""
_ASKED_NOTHING = {"cpu": "100m", "memory": "128Mi"}
_LEAST, _STEPS = 55, 40
"""Between so many hundredths of what it asks for and so many more is what a container uses."""


def answer(path: str, store: Store, wanted: Wanted, now: datetime) -> Object:
    """A list, or what one object uses; raises NotFound for everything else."""
    match path.removeprefix(ROOT).strip("/").split("/"):
        case ["nodes"]:
            return _listed(SERVED[0], [_node(each, store, now) for each in _found(store, NODES, wanted)])
        case ["nodes", name]:
            return next((_node(each, store, now) for each in _named(store, NODES, "", name)), None) or _missing(0, name)
        case ["pods"]:
            return _listed(SERVED[1], [_pod(each, now) for each in _running(_found(store, PODS, wanted))])
        case ["namespaces", space, "pods"]:
            inside = [each for each in _found(store, PODS, wanted) if each["metadata"]["namespace"] == space]
            return _listed(SERVED[1], [_pod(each, now) for each in _running(inside)])
        case ["namespaces", space, "pods", name]:
            running = _running(_named(store, PODS, space, name))
            return next((_pod(each, now) for each in running), None) or _missing(1, name)
    raise status.unknown_path()


def verbs(served: Served) -> Sequence[str]:
    """Of any kind a server serves; of these, only reading."""
    return VERBS if served in SERVED else discovery.VERBS


def discovered(group: bool) -> Object:
    """The group, or what its version serves."""
    if group:
        return discovery.group(GROUP, [VERSION])
    document = discovery.resource_list(f"{GROUP}/{VERSION}", SERVED)
    return {**document, "resources": [{**each, "verbs": list(VERBS)} for each in document["resources"]]}


def _found(store: Store, resource: Resource, wanted: Wanted) -> list[Object]:
    return [each for each in store.of_kind((resource.group, resource.plural)) if wanted.takes(each)]


def _named(store: Store, resource: Resource, namespace: str, name: str) -> list[Object]:
    found = store.get((resource.group, resource.plural), namespace, name)
    return [found] if found else []


def _missing(which: int, name: str) -> Object:
    raise status.not_found(SERVED[which].resource, name)


def _running(pods: Iterable[Object]) -> list[Object]:
    return [each for each in pods if (each.get("status") or {}).get("phase") == "Running"]


def _listed(served: Served, items: list[Object]) -> Object:
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": served.list_kind, "metadata": {}, "items": items}


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
