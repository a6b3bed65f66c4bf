"""Requests that get far into the Kubernetes-style door: of every kind that is served the verbs, a document that it takes but
for a few places, and patches of that document. Random paths and bodies (`test_fuzz`) mostly end with 404 or 405.
"""

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import yaml
from hypothesis import strategies as st

from tests.attacks import kube_door
from tests.attacks.bodies import as_json
from tests.support import quotas
from tests.support.world import POLICY

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
JSON_PATCH, MERGE_PATCH = "application/json-patch+json", "application/merge-patch+json"
APPLY_PATCH, STRATEGIC = "application/apply-patch+yaml", "application/strategic-merge-patch+json"
PATCHES = (JSON_PATCH, MERGE_PATCH, STRATEGIC, APPLY_PATCH)
OVERRIDE = """
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: OverridePolicy
metadata: {name: mirror}
spec:
  resourceSelectors: [{apiVersion: kubeflow.org/v1, kind: PyTorchJob}]
  overrideRules:
    - targetCluster: {clusterNames: [north]}
      overriders:
        imageOverrider: [{component: Registry, operator: replace, value: mirror.example.com}]
        plaintext: [{path: /metadata/labels/a, operator: add, value: b}]
"""
TREE = {
    "apiVersion": "scheduling.sigs.k8s.io/v1beta1", "kind": "ElasticQuotaTree",
    "metadata": {"name": "elasticquotatree", "namespace": "kube-system"},
    "spec": {"root": {"name": "root", "min": quotas.PLENTY, "max": quotas.PLENTY, "children": [
        {"name": "team", "namespaces": ["default"], "max": quotas.PLENTY, "attributes": {"excess": "TakeBack"}},
    ]}},
}  # fmt: skip
_DEVICES = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 2}}]}}
PLAIN: dict[str, Any] = {
    "Namespace": {},
    "ConfigMap": {"data": {"k": "v"}, "binaryData": {"b": "AAAA"}},
    "Secret": {"type": "Opaque", "data": {"k": "dg=="}, "stringData": {"s": "v"}},
    "ServiceAccount": {"secrets": [{"name": "a"}], "imagePullSecrets": [{"name": "a"}]},
    "PersistentVolumeClaim": {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    },
    "PriorityClass": {"value": 100, "preemptionPolicy": "Never", "globalDefault": False, "description": "x"},
    "ResourceClaim": {"spec": _DEVICES},
    "ResourceClaimTemplate": {"spec": {"metadata": {"labels": {"a": "b"}}, "spec": _DEVICES}},
    "Queue": {"spec": {"queuePolicy": "Block", "priority": 1}, "status": {}},
    "QueueUnit": {"spec": {"queue": "root-team", "priority": 5}},
    "Cluster": {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}, "metadata": {"labels": {"a": "b"}}},
}
"""What is no example of the documentation, by kind."""
SCALE = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {}, "spec": {"replicas": 2}}
OPTIONS = {
    "kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0, "propagationPolicy": "Background",
    "preconditions": {"uid": "x", "resourceVersion": "1"}, "dryRun": ["All"], "orphanDependents": True,
}  # fmt: skip
STREAMS = ("command=ls&stdout=true", "command=&container=%00", "ports=80", "ports=²", "tailLines=-1", "sinceTime=x", "")


@dataclass(frozen=True)
class Target:
    """A kind as it is served, and a document that it takes."""

    home: str
    verbs: tuple[str, ...]
    parts: tuple[str, ...]
    document: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.document["metadata"]["name"])


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    body: bytes = b""
    content_type: str = "application/json"
    query: str = ""


def documents() -> dict[tuple[str, str], dict[str, Any]]:
    """The examples, by version and kind."""
    texts = [each.read_text() for each in sorted(EXAMPLES.glob("*.yaml"))] + [POLICY, OVERRIDE]
    found = [yaml.safe_load(text) for text in texts] + [kube_door.JOB, TREE]
    return {(each["apiVersion"], each["kind"]): each for each in found}


def targets(catalog: Iterable[Any]) -> list[Target]:
    known, found = documents(), []
    for kind in catalog:
        resource = kind.served.resource
        example = known.get((resource.api_version, resource.kind)) or _alike(resource.kind, known)
        document = copy.deepcopy(example or PLAIN.get(resource.kind, {}))
        document.update(apiVersion=resource.api_version, kind=resource.kind)
        metadata = document.setdefault("metadata", {})
        metadata.setdefault("name", "north" if resource.kind == "Cluster" else "llama")
        root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
        if resource.namespaced:
            namespace = metadata.setdefault("namespace", "default")
            root += f"/namespaces/{namespace}"
        parts = tuple(sorted(set(kind.served.subresources) - {"proxy"}))
        found.append(Target(f"{root}/{resource.plural}", tuple(sorted(set(kind.verbs) - {"watch"})), parts, document))
    return found


def _alike(kind: str, known: dict[tuple[str, str], dict[str, Any]]) -> dict[str, Any] | None:
    """The example of the same kind in another version, or of the kind that is for one namespace."""
    same = {each: document for (_, each), document in known.items()}
    return same.get(kind) or same.get(kind.removeprefix("Cluster")) or same.get(f"Cluster{kind}")


def paths_of(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    steps = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    return [*([path] if path else []), *(each for key, inner in steps for each in paths_of(inner, (*path, key)))]


def spoilt(draw: Any, document: dict[str, Any], values: Any, most: int) -> dict[str, Any]:
    """A copy in which a few places hold something else, or are gone; at times its name, its kind or its version."""
    changed = copy.deepcopy(document)
    for _ in range(draw(st.integers(0, most))):
        *parents, last = draw(st.sampled_from(sorted(paths_of(changed), key=str)))
        inner = changed
        for step in parents:
            inner = inner[step]
        if draw(st.booleans()):
            inner[last] = draw(values)
        else:
            del inner[last]
        if not paths_of(changed):
            break
    return changed


def json_patch(draw: Any, document: dict[str, Any], values: Any) -> list[dict[str, Any]]:
    """Operations at places that the document has."""
    pointers = ["/" + "/".join(str(step) for step in path) for path in paths_of(document)]
    places = st.sampled_from(pointers) | st.sampled_from(pointers).map(lambda each: f"{each}/-")
    operation = st.fixed_dictionaries(
        {"op": st.sampled_from(["add", "replace", "remove", "copy", "move", "test"]), "path": places, "value": values},
        optional={"from": places},
    )
    return draw(st.lists(operation, min_size=1, max_size=3))  # type: ignore[no-any-return]


def patch(draw: Any, target: Target, values: Any) -> tuple[str, bytes]:
    content_type = draw(st.sampled_from(PATCHES))
    if content_type == JSON_PATCH:
        return content_type, as_json(json_patch(draw, target.document, values))
    changed = spoilt(draw, target.document, values, 2)
    if content_type != APPLY_PATCH:
        keys = sorted(changed, key=str)
        kept = set(draw(st.lists(st.sampled_from(keys), max_size=2))) if keys else set()
        changed = {key: value for key, value in changed.items() if key in kept} or {"metadata": {"labels": {"a": "b"}}}
    return content_type, as_json(changed)


def request(draw: Any, target: Target, values: Any, query: str) -> Request:
    """One that the kind serves."""
    one = f"{target.home}/{target.name}"
    if target.parts and draw(st.integers(0, 3)) == 0:
        return _of_a_part(draw, f"{one}/{draw(st.sampled_from(target.parts))}", values)
    match draw(st.sampled_from(target.verbs)):
        case "create":
            fresh = copy.deepcopy(target.document)
            fresh["metadata"]["name"] = f"n{draw(st.integers(0, 10**9))}"
            return Request("POST", target.home, as_json(spoilt(draw, fresh, values, 3)), query=query)
        case "update":
            return Request("PUT", one, as_json(spoilt(draw, target.document, values, 2)), query=query)
        case "patch":
            content_type, body = patch(draw, target, values)
            force = "fieldManager=fuzz&force=true" if content_type == APPLY_PATCH else query
            return Request("PATCH", one, body, content_type, force)
        case "delete":
            return Request("DELETE", one, as_json(spoilt(draw, OPTIONS, values, 4)), query=query)
        case "deletecollection":
            return Request("DELETE", target.home, as_json(spoilt(draw, OPTIONS, values, 4)), query=query)
        case "list":
            return Request("GET", target.home, query=query)
    return Request("GET", one, query=query)


def _of_a_part(draw: Any, path: str, values: Any) -> Request:
    if not path.endswith("/scale"):
        return Request(draw(st.sampled_from(["GET", "POST"])), path, query=draw(st.sampled_from(STREAMS)))
    method = draw(st.sampled_from(["GET", "PUT", "PATCH"]))
    content_type = MERGE_PATCH if method == "PATCH" else "application/json"
    return Request(method, path, as_json(spoilt(draw, SCALE, values, 2)), content_type)


@st.composite
def stories(draw: Any, all_targets: list[Target], values: Any, queries: Any) -> tuple[Target, list[Request]]:
    """A kind, and a few requests about one object of it, which is there when it can be."""
    target = draw(st.sampled_from(all_targets))
    begin = [Request("POST", target.home, as_json(target.document))] if "create" in target.verbs else []
    return target, [
        *begin,
        *(
            request(draw, target, values, urlencode(draw(queries), errors="surrogatepass"))
            for _ in range(draw(st.integers(1, 3)))
        ),
    ]
