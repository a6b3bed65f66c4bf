"""The kinds that a simulated member serves: built-in ones, and those of the current CustomResourceDefinitions."""

from collections.abc import Collection, Iterator
from typing import Any

from fleet.kube import resources
from fleet.kube.discovery import Served
from fleet.kube.resources import Resource
from fleet.kube.server import kinds, paths
from fleet.kube.server.kinds import Object, Write
from simulator.apiserver.objects.rules import now
from simulator.apiserver.objects.storage import StoredKind
from simulator.apiserver.objects.store import Store

_NAMESPACE = {"apiVersion": "v1", "kind": "Namespace"}
_ENDPOINTS = Resource("", "v1", "endpoints", "Endpoints")

BUILT_IN: tuple[Served, ...] = (
    Served(resources.NAMESPACES, ("ns",), subresources=("status",)),
    Served(resources.NODES, ("no",), subresources=("status",)),
    Served(resources.PODS, ("po",), ("all",), ("status", "log", "binding", "exec", "attach", "portforward")),
    Served(resources.SERVICES, ("svc",), ("all",), ("status",)),
    Served(resources.EVENTS, ("ev",)),
    Served(resources.CONFIG_MAPS, ("cm",)),
    Served(resources.SECRETS),
    Served(resources.SERVICE_ACCOUNTS, ("sa",), subresources=("token",)),
    Served(resources.VOLUME_CLAIMS, ("pvc",), subresources=("status",)),
    Served(resources.VOLUMES, ("pv",), subresources=("status",)),
    Served(_ENDPOINTS, ("ep",)),
    Served(resources.JOBS, (), ("all",), ("status",)),
    Served(resources.LEASES),
    Served(resources.PRIORITY_CLASSES, ("pc",)),
    Served(resources.CRDS, ("crd", "crds"), subresources=("status",)),
)
DEVICE_CLAIMS = "resource.k8s.io"
"""A group that is served where a member's description asks for it: devices that pods have by claims."""
_DEVICE_KINDS = (
    Served(resources.DEVICE_CLASSES),
    Served(resources.RESOURCE_SLICES),
    Served(resources.RESOURCE_CLAIMS, subresources=("status",)),
    Served(resources.RESOURCE_CLAIM_TEMPLATES),
)
SYSTEM_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
Target = paths.Target[kinds.Kind]


class Catalog(paths.Catalog[kinds.Kind]):
    def __init__(self, store: Store) -> None:
        super().__init__(StoredKind(served, store, self) for served in BUILT_IN)
        self._store = store
        self.process_images: Collection[str] = ()
        """Pods of these images are marked as real processes when they are created."""
        for definition in store.of_kind((resources.CRDS.group, resources.CRDS.plural)):
            self.learn(definition)
        namespaces = self.of(resources.NAMESPACES)
        for name in SYSTEM_NAMESPACES:
            if namespaces.get("", name) is None:
                self.create(resources.NAMESPACES, {**_NAMESPACE, "metadata": {"name": name}})

    def of(self, resource: Resource) -> StoredKind:
        """The kind of a resource that is served."""
        kind = self.find(resource.group, resource.version, resource.plural)
        if not isinstance(kind, StoredKind):
            raise LookupError(f"{resource} is not served")
        return kind

    def stored(self) -> Iterator[StoredKind]:
        return (kind for kind in self if isinstance(kind, StoredKind))

    def create(self, resource: Resource, document: Object) -> Object:
        """Creates an object before the server is asked for it."""
        kind, write = self.of(resource), Write("", now())
        return kind.store(None, kind.admitted(document, write), write)

    def serve_device_claims(self) -> None:
        for served in _DEVICE_KINDS:
            self.add(StoredKind(served, self._store, self))

    def learn(self, definition: dict[str, Any]) -> None:
        for served in _of_definition(definition):
            self.add(StoredKind(served, self._store, self))

    def unlearn(self, definition: dict[str, Any]) -> None:
        for served in _of_definition(definition):
            self.remove(served.resource.group, served.resource.version, served.resource.plural)


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
