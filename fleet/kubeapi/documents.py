"""Everything a client reads that is no object: health, version, discovery, OpenAPI.

Schemas are left open: a kind's service checks every field itself and answers with the fields at fault.
"""

from typing import Any

from fleet.kube import discovery
from fleet.kubeapi.catalog import Catalog
from fleet.kubeapi.kinds import Kind

OPEN = ("/healthz", "/livez", "/readyz", "/version")
"""Answered to everybody."""
_VERSION = discovery.version("v1.31.0+convoy")
_PARAMETERS = [
    {"name": name, "in": "query", "schema": {"type": "string"}}
    for name in ("fieldManager", "fieldValidation", "dryRun")
]


def find(path: str, catalog: Catalog) -> dict[str, Any] | str | None:
    """The document at the path; None when there is none."""
    path = path.rstrip("/")
    if path in ("/healthz", "/livez", "/readyz"):
        return "ok"
    if path == "/version":
        return _VERSION
    if path == "/api":
        return discovery.core_versions()
    if path == "/apis":
        return discovery.groups(each.served for each in catalog)
    if path.startswith("/openapi/v3"):
        return _openapi(path.removeprefix("/openapi/v3").strip("/"), catalog)
    parts = path.strip("/").split("/")
    if parts[0] == "apis" and len(parts) == 2 and (versions := catalog.versions(parts[1])):
        return discovery.group(parts[1], versions)
    if path == "/api/v1" or (parts[0] == "apis" and len(parts) == 3):
        group, version = ("", "v1") if parts[0] == "api" else (parts[1], parts[2])
        if kinds := catalog.of_version(group, version):
            return _resources(f"{group}/{version}" if group else version, kinds)
    return None


def _resources(api_version: str, kinds: list[Kind]) -> dict[str, Any]:
    """Each with the verbs it takes."""
    document = discovery.resource_list(api_version, (each.served for each in kinds))
    verbs = {each.served.resource.plural: list(each.verbs) for each in kinds}
    return {**document, "resources": [{**entry, "verbs": verbs[entry["name"]]} for entry in document["resources"]]}


def _openapi(root: str, catalog: Catalog) -> dict[str, Any] | None:
    if not root:
        roots = dict.fromkeys(each.served.resource.root.strip("/") for each in catalog)
        return {"paths": {each: {"serverRelativeURL": f"/openapi/v3/{each}"} for each in roots}}
    kinds = [each for each in catalog if each.served.resource.root.strip("/") == root]
    if not kinds:
        return None
    return {
        "openapi": "3.0.0",
        "info": {"title": "Convoy", "version": "v1"},
        "paths": {path: item for each in kinds for path, item in _paths(each).items()},
        "components": {"schemas": {_schema_name(each): _schema(each) for each in kinds}},
    }


def _paths(kind: Kind) -> dict[str, Any]:
    resource = kind.served.resource
    base = f"{resource.root}/namespaces/{{namespace}}" if resource.namespaced else resource.root
    return {
        f"{base}/{resource.plural}": {"post": _operation(kind, "post")},
        f"{base}/{resource.plural}/{{name}}": {"patch": _operation(kind, "patch"), "put": _operation(kind, "put")},
    }


def _operation(kind: Kind, action: str) -> dict[str, Any]:
    return {
        "parameters": _PARAMETERS,
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _identity(kind),
    }


def _schema(kind: Kind) -> dict[str, Any]:
    return {
        "type": "object",
        "x-kubernetes-group-version-kind": [_identity(kind)],
        "x-kubernetes-preserve-unknown-fields": True,
    }


def _identity(kind: Kind) -> dict[str, str]:
    resource = kind.served.resource
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _schema_name(kind: Kind) -> str:
    resource = kind.served.resource
    return f"dev.convoy.{resource.group or 'core'}.{resource.version}.{resource.kind}"
