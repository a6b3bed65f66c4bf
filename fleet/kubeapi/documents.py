"""Everything a client reads that is no object: health, version, discovery, OpenAPI."""

from collections.abc import Iterable
from typing import Any

from fleet.kube import crds, discovery, openapi
from fleet.kube.discovery import Served
from fleet.kubeapi.catalog import Catalog
from fleet.kubeapi.kinds import Kind

OPEN = ("/healthz", "/livez", "/readyz", "/version")
"""Answered to everybody."""
_VERSION = discovery.version("v1.31.0+convoy")
_FIRST = ("", "batch")
"""Groups whose kinds a bare name means: ``job`` is that of Kubernetes."""


def find(path: str, catalog: Catalog, accept: str = "") -> dict[str, Any] | str | None:
    """The document at the path; None when there is none. OpenAPI v2 describes nothing, which is an empty message there:

    kubectl asks for it about kinds that version 3 does not know, and then says so itself.
    """
    path = path.rstrip("/")
    if path in ("/healthz", "/livez", "/readyz"):
        return "ok"
    if path == "/version":
        return _VERSION
    if path in ("/api", "/apis"):
        return _groups(path == "/api", catalog, accept)
    if path == "/openapi/v2":
        return ""
    if path == "/openapi/v3":
        return openapi.index(_served(catalog))
    if path.startswith("/openapi/v3/"):
        return _openapi(path.removeprefix("/openapi/v3/"), catalog)
    parts = path.strip("/").split("/")
    if parts[0] == "apis" and len(parts) == 2 and (versions := catalog.versions(parts[1])):
        return discovery.group(parts[1], versions)
    if path == "/api/v1" or (parts[0] == "apis" and len(parts) == 3):
        group, version = ("", "v1") if parts[0] == "api" else (parts[1], parts[2])
        if kinds := catalog.of_version(group, version):
            return _resources(f"{group}/{version}" if group else version, kinds)
    return None


def _openapi(root: str, catalog: Catalog) -> dict[str, Any] | None:
    """With what pods are made of: the documents of jobs refer to it."""
    found = openapi.document(root, _served(catalog), "Convoy")
    if found is not None:
        found["components"]["schemas"] = {**crds.components(), **found["components"]["schemas"]}
    return found


def _served(kinds: Iterable[Kind]) -> list[Served]:
    found = [each.shown for each in kinds]
    return sorted(found, key=lambda each: each.resource.group not in _FIRST)


def _groups(core: bool, catalog: Catalog, accept: str) -> dict[str, Any]:
    served = [each for each in _served(catalog) if (each.resource.group == "") == core]
    if discovery.wants_aggregated(accept):
        verbs = {each.served.resource: each.verbs for each in catalog}
        return discovery.aggregated(served, lambda each: verbs[each.resource])
    return discovery.core_versions() if core else discovery.groups(served)


def _resources(api_version: str, kinds: list[Kind]) -> dict[str, Any]:
    """Each with the verbs it takes."""
    document = discovery.resource_list(api_version, (each.shown for each in kinds))
    verbs = {each.served.resource.plural: list(each.verbs) for each in kinds}
    entries = [{**each, "verbs": verbs.get(each["name"], each["verbs"])} for each in document["resources"]]
    return {**document, "resources": entries}
