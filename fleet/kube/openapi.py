"""The OpenAPI v3 documents of an API server: its kinds, their schemas, and the parameters of their operations.

kubectl reads them for ``explain``, and before it sends objects. There is one document for each group and version.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fleet.kube.discovery import Served
from fleet.kube.schema import builtin

Document = dict[str, Any]
_PARAMETERS = [
    {"name": name, "in": "query", "schema": {"type": "string"}}
    for name in ("fieldManager", "fieldValidation", "dryRun")
]
_REFERENCE = "#/components/schemas/"
_IDENTITY = {
    "apiVersion": {"type": "string", "description": "The group and version of the kind."},
    "kind": {"type": "string", "description": "What this is."},
    "metadata": {"description": "Its name, labels and owners.", "allOf": [{"$ref": f"{_REFERENCE}ObjectMeta"}]},
}


def index(served: Iterable[Served]) -> Document:
    """``GET /openapi/v3``."""
    roots = dict.fromkeys(kind.resource.root.strip("/") for kind in served)
    return {"paths": {root: {"serverRelativeURL": f"/openapi/v3/{root}"} for root in roots}}


def document(root: str, served: Iterable[Served], title: str = "Kubernetes") -> Document | None:
    """``GET /openapi/v3/apis/GROUP/VERSION``; None for a version that is not served."""
    kinds = [kind for kind in served if kind.resource.root.strip("/") == root]
    if not kinds:
        return None
    schemas: Document = {"ObjectMeta": builtin.metadata_document()}
    for kind in kinds:
        schemas |= _schemas(kind)
    return {
        "openapi": "3.0.0",
        "info": {"title": title, "version": "unversioned"},
        "paths": {path: item for kind in kinds for path, item in _paths(kind).items()},
        "components": {"schemas": schemas},
    }


def _schemas(served: Served) -> Document:
    resource = served.resource
    known = builtin.documents(resource.kind) if builtin.known(resource) else {}
    own: Mapping[str, Any] = known.get(resource.kind) or served.document or _OPEN
    return {**known, resource.kind: {**whole(own), "x-kubernetes-group-version-kind": [_identity(served)]}}


def whole(own: Mapping[str, Any]) -> Document:
    """A kind's own schema plus the fields that every object has."""
    return {"type": "object", **own, "properties": {**(own.get("properties") or {}), **_IDENTITY}}


_OPEN: Mapping[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _paths(served: Served) -> Document:
    resource = served.resource
    base = f"{resource.root}/namespaces/{{namespace}}" if resource.namespaced else resource.root
    named = f"{base}/{resource.plural}/{{name}}"
    paths = {
        f"{base}/{resource.plural}": _operations(served, ("get", "list"), ("post", "post")),
        named: _operations(served, ("get", "get"), ("patch", "patch"), ("put", "put"), ("delete", "delete")),
    }
    if "status" in served.subresources:
        written = () if "status" in served.only_read else (("patch", "patch"), ("put", "put"))
        paths[f"{named}/status"] = _operations(served, ("get", "get"), *written)
    return paths


def _operations(served: Served, *actions: Sequence[str]) -> Document:
    return {method: _operation(served, action) for method, action in actions}


def _operation(served: Served, action: str) -> Document:
    shown = {"application/json": {"schema": {"$ref": f"{_REFERENCE}{served.resource.kind}"}}}
    answer = {"200": {"description": "OK"} if action == "list" else {"description": "OK", "content": shown}}
    operation: Document = {
        "responses": answer,
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _identity(served),
    }
    return operation if action in ("get", "list") else {**operation, "parameters": _PARAMETERS}


def _identity(served: Served) -> dict[str, str]:
    resource = served.resource
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}
