"""The documents of a server that are not objects: health, version, discovery, OpenAPI."""

from collections.abc import Iterable
from typing import Any

from fleet.kube import crds, discovery, openapi
from fleet.kube.discovery import Served
from fleet.kube.server.kinds import Kind
from fleet.kube.server.paths import Catalog

OPEN = ("/healthz", "/livez", "/readyz", "/version")
"""Answered without credentials."""
_FIRST = ("", "batch")
"""Groups that come first, so that a plain name such as ``job`` means the kind of Kubernetes itself."""


class Documents:
    def __init__(self, catalog: Catalog[Any], version: str, title: str = "Kubernetes") -> None:
        self._catalog, self._version, self._title = catalog, discovery.version(version), title

    def find(self, path: str, accept: str = "") -> dict[str, Any] | str | None:
        """The document at the path; None when there is none.

        OpenAPI v2 is empty: kubectl asks for it about kinds that version 3 does not know, and then says so itself.
        """
        path = path.rstrip("/")
        if path in ("/healthz", "/livez", "/readyz"):
            return "ok"
        if path == "/version":
            return self._version
        if path in ("/api", "/apis"):
            return self._groups(path == "/api", accept)
        if path == "/openapi/v2":
            return ""
        if path == "/openapi/v3":
            return openapi.index(self._served())
        if path.startswith("/openapi/v3/"):
            return self._openapi(path.removeprefix("/openapi/v3/"))
        return self._group(path.strip("/").split("/"))

    def _group(self, parts: list[str]) -> dict[str, Any] | None:
        """The versions of a group, or the resources of a version."""
        if parts[0] == "apis" and len(parts) == 2 and (versions := self._catalog.versions(parts[1])):
            return discovery.group(parts[1], versions)
        if parts == ["api", "v1"] or (parts[0] == "apis" and len(parts) == 3):
            group, version = ("", "v1") if parts[0] == "api" else (parts[1], parts[2])
            if kinds := self._catalog.of_version(group, version):
                return discovery.resource_list(f"{group}/{version}" if group else version, _shown(kinds))
        return None

    def _openapi(self, root: str) -> dict[str, Any] | None:
        """The document of a version, with the types that pods consist of: the schemas of jobs refer to them."""
        document = openapi.document(root, self._served(), self._title)
        if document is not None:
            document["components"]["schemas"] = {**crds.components(), **document["components"]["schemas"]}
        return document

    def _served(self) -> list[Served]:
        return sorted(_shown(self._catalog), key=lambda served: served.resource.group not in _FIRST)

    def _groups(self, core: bool, accept: str) -> dict[str, Any]:
        served = [kind for kind in self._served() if (kind.resource.group == "") == core]
        if discovery.wants_aggregated(accept):
            return discovery.aggregated(served)
        return discovery.core_versions() if core else discovery.groups(served)


def _shown(kinds: Iterable[Kind]) -> list[Served]:
    return [kind.shown for kind in kinds]
