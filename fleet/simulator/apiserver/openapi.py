"""The OpenAPI v3 documents kubectl looks for before it sends anything: which kinds there are and which parameters they take.

Schemas are left open: the simulated member checks objects itself and prunes nothing.
"""

from typing import Any

from fleet.kube.discovery import Served
from fleet.simulator.apiserver.catalog import Catalog

_PARAMETERS = [
    {"name": name, "in": "query", "schema": {"type": "string"}}
    for name in ("fieldManager", "fieldValidation", "dryRun")
]


def document(path: str, catalog: Catalog) -> dict[str, Any] | None:
    """``/openapi/v3`` and ``/openapi/v3/apis/GROUP/VERSION``; None for a version that is not served."""
    rest = path.removeprefix("/openapi/v3").strip("/")
    if not rest:
        roots = dict.fromkeys(served.resource.root.strip("/") for served in catalog)
        return {"paths": {root: {"serverRelativeURL": f"/openapi/v3/{root}"} for root in roots}}
    served = [each for each in catalog if each.resource.root.strip("/") == rest]
    if not served:
        return None
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": {path: item for each in served for path, item in _paths(each).items()},
        "components": {"schemas": {_name(each): _schema(each) for each in served}},
    }


def _paths(served: Served) -> dict[str, Any]:
    resource = served.resource
    base = f"{resource.root}/namespaces/{{namespace}}" if resource.namespaced else resource.root
    return {
        f"{base}/{resource.plural}": {"post": _operation(served, "post")},
        f"{base}/{resource.plural}/{{name}}": {"patch": _operation(served, "patch"), "put": _operation(served, "put")},
    }


def _operation(served: Served, action: str) -> dict[str, Any]:
    return {
        "parameters": _PARAMETERS,
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _gvk(served),
    }


def _schema(served: Served) -> dict[str, Any]:
    return {
        "type": "object",
        "x-kubernetes-group-version-kind": [_gvk(served)],
        "x-kubernetes-preserve-unknown-fields": True,
    }


def _gvk(served: Served) -> dict[str, str]:
    resource = served.resource
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _name(served: Served) -> str:
    resource = served.resource
    return f"io.k8s.{resource.group or 'core'}.{resource.version}.{resource.kind}"
