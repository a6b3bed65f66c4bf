"""Which kinds a simulated member serves: the built-in ones, and those of CustomResourceDefinitions as they come and go."""

from collections.abc import Iterator
from typing import Any

from fleet.kube import builtin, resources
from fleet.kube.discovery import Served
from fleet.kube.resources import Resource
from fleet.kube.schemas import Schema, of_kind

_ENDPOINTS = Resource("", "v1", "endpoints", "Endpoints")
_LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
_PRIORITIES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)

BUILT_IN: tuple[Served, ...] = (
    Served(resources.NAMESPACES, ("ns",), subresources=("status",)),
    Served(resources.NODES, ("no",), subresources=("status",)),
    Served(resources.PODS, ("po",), ("all",), ("status", "log", "binding")),
    Served(resources.SERVICES, ("svc",), ("all",), ("status",)),
    Served(resources.EVENTS, ("ev",)),
    Served(resources.CONFIG_MAPS, ("cm",)),
    Served(resources.SECRETS),
    Served(resources.SERVICE_ACCOUNTS, ("sa",), subresources=("token",)),
    Served(resources.VOLUME_CLAIMS, ("pvc",), subresources=("status",)),
    Served(_ENDPOINTS, ("ep",)),
    Served(resources.JOBS, (), ("all",), ("status",)),
    Served(_LEASES),
    Served(_PRIORITIES, ("pc",)),
    Served(resources.CRDS, ("crd", "crds"), subresources=("status",)),
)


class Catalog:
    """Looked up by (group, version, plural) for every request."""

    def __init__(self) -> None:
        self._served = {(s.resource.group, s.resource.version, s.resource.plural): s for s in BUILT_IN}

        self._schemas: dict[Resource, Schema] = {}

    def find(self, group: str, version: str, plural: str) -> Served | None:
        return self._served.get((group, version, plural))

    def of_version(self, group: str, version: str) -> list[Served]:
        return [s for s in self._served.values() if (s.resource.group, s.resource.version) == (group, version)]

    def versions(self, group: str) -> list[str]:
        return list(dict.fromkeys(s.resource.version for s in self._served.values() if s.resource.group == group))

    def schema(self, served: Served) -> Schema:
        """What the objects of the kind are made of."""
        resource = served.resource
        if resource not in self._schemas:
            self._schemas[resource] = builtin.schema(resource) or of_kind(served.document)
        return self._schemas[resource]

    def custom(self, group: str) -> bool:
        return group not in {s.resource.group for s in BUILT_IN}

    def __iter__(self) -> Iterator[Served]:
        return iter(self._served.values())

    def learn(self, definition: dict[str, Any]) -> None:
        for served in _of_definition(definition):
            resource = served.resource
            self._served[(resource.group, resource.version, resource.plural)] = served
            self._schemas.pop(resource, None)

    def unlearn(self, definition: dict[str, Any]) -> None:
        for served in _of_definition(definition):
            resource = served.resource
            self._served.pop((resource.group, resource.version, resource.plural), None)
            self._schemas.pop(resource, None)


def _of_definition(definition: dict[str, Any]) -> Iterator[Served]:
    spec = definition["spec"]
    names = spec["names"]
    for version in spec["versions"]:
        if version.get("served", True):
            parts = version.get("subresources") or {}
            yield Served(
                Resource(spec["group"], version["name"], names["plural"], names["kind"], spec["scope"] == "Namespaced"),
                short_names=tuple(names.get("shortNames") or ()),
                categories=tuple(names.get("categories") or ()),
                subresources=tuple(part for part in ("status", "scale") if part in parts),
                printed=tuple(version.get("additionalPrinterColumns") or ()),
                document=(version.get("schema") or {}).get("openAPIV3Schema"),
                scale=parts.get("scale"),
            )
