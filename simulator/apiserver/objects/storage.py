"""How a simulated member stores the objects of a kind: defaults, validation, the status subresource, and deletion.

Stands in for the registry of an API server, and for the controllers whose work clients take for the server's.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fleet.kube import crds, tables
from fleet.kube.discovery import Served
from fleet.kube.requests import status
from fleet.kube.requests.status import KubeError
from fleet.kube.resources import CRDS, NAMESPACES, PODS, SERVICE_ACCOUNTS, SERVICES, VOLUME_CLAIMS
from fleet.kube.schema import builtin, shapes, structural, validation
from fleet.kube.schema.schemas import METADATA, Schema, of_kind
from fleet.kube.server import kinds
from fleet.kube.server.kinds import Exact, Key, Namespaces, Object, Write
from fleet.kube.tables import Column
from simulator.apiserver.objects import defaults, definitions, deletion, rules
from simulator.apiserver.objects.store import Store
from simulator.images import RUN

if TYPE_CHECKING:
    from simulator.apiserver.objects.catalog import Catalog

_COLLECT_S = 0.05
"""How long after its creation an object whose owners do not exist is collected."""
_ANSWERED_WHOLE = (PODS, SERVICES, VOLUME_CLAIMS, SERVICE_ACCOUNTS)
"""Kinds for which a deletion returns the object in its last state, instead of a Status."""
_IN_STATUS_WRITES = ("apiVersion", "kind", "metadata", "status")
_FIELDS: dict[tuple[str, str], set[str]] = {
    ("", "pods"): {
        *("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName"),
        *("status.phase", "status.podIP", "status.nominatedNodeName"),
    },
    ("", "nodes"): {"spec.unschedulable"},
    ("", "namespaces"): {"status.phase"},
    ("", "secrets"): {"type"},
    ("", "events"): {
        *(f"involvedObject.{part}" for part in ("kind", "namespace", "name", "uid", "apiVersion", "fieldPath")),
        *("involvedObject.resourceVersion", "reason", "reportingComponent", "source", "type"),
    },
    ("batch", "jobs"): {"status.successful"},
}


class StoredKind(kinds.Kind):
    """A kind whose objects are in the store, in one version for all that are served."""

    def __init__(self, served: Served, store: Store, catalog: "Catalog") -> None:
        self.served, self._store, self._catalog = served, store, catalog
        self.key = served.resource.group, served.resource.plural
        self.field_labels = frozenset(_FIELDS.get(self.key, ()))

    @cached_property
    def schema(self) -> Schema:
        return builtin.schema(self.served.resource) or of_kind(self.served.document)

    def table_columns(self) -> tuple[Column, ...]:
        printed = self.served.printed
        return tuple(tables.columns_from(printed) if printed else tables.columns_of(*self.key))

    def objects(self, namespaces: Namespaces, after: Key | None, exact: Exact) -> Iterator[Object]:
        return self.objects_at(self._store.version, namespaces, after, exact)

    def objects_at(self, version: int, namespaces: Namespaces, after: Key | None, exact: Exact) -> Iterator[Object]:
        for stored in self._store.at(version, self.key, namespaces, after):
            yield self.in_version(stored)

    def lines_at(self, version: int, namespaces: Namespaces, after: Key | None, exact: Exact) -> Iterator[Object]:
        return self.objects_at(version, namespaces, after, exact)

    def get(self, namespace: str, name: str) -> Object | None:
        stored = self._store.get(self.key, namespace, name)
        return self.in_version(stored) if stored else None

    def in_version(self, stored: Object) -> Object:
        """The object in the version of this kind; all versions of a kind are stored as one."""
        version = self.served.resource.api_version
        return stored if stored.get("apiVersion") == version else {**stored, "apiVersion": version}

    @cached_property
    def shown(self) -> Served:
        """The served kind. The schemas of training kinds are extended by the common parts (`fleet.kube.crds`)."""
        shown = super().shown
        return replace(shown, document=crds.explained(shown.resource, shown.document))

    def admitted(self, document: Object, write: Write) -> Object:
        resource, schema = self.served.resource, self.schema
        if fault := shapes.fault(document, resource):
            message = f"{resource.kind} in version {resource.api_version!r} cannot be handled as a {resource.kind}"
            raise KubeError(400, f"{message}: {fault}")
        document = {name: value for name, value in document.items() if value is not None}
        if not resource.namespaced:
            document["metadata"].pop("namespace", None)
        if write.applies:
            return self._applied(structural.pruned(schema, document), write)
        if write.subresource:
            kept = (name for name in document if name in _IN_STATUS_WRITES or name not in schema.fields)
            document = {name: document[name] for name in kept}
        managers = document["metadata"].pop("managedFields", None)
        known: Object = structural.with_defaults(schema, structural.pruned(schema, document))
        if builtin.known(resource):
            known = structural.without_empty(schema, known)
        metadata = structural.without_empty(METADATA, known["metadata"])
        return {**known, "metadata": metadata if managers is None else {**metadata, "managedFields": managers}}

    def _applied(self, config: Object, write: Write) -> Object:
        """An apply changes the status only through its subresource, and all other fields only without it."""
        if "status" not in self.served.subresources:
            return config
        always = ("apiVersion", "kind", "metadata")
        of_status = write.subresource == "status"
        return {name: value for name, value in config.items() if name in always or (name == "status") == of_status}

    def check_new(self, document: Object, write: Write) -> None:
        if self.served.resource.namespaced:
            namespace = self._store.get((NAMESPACES.group, NAMESPACES.plural), "", write.namespace)
            if namespace is None:
                raise status.not_found(NAMESPACES, write.namespace)
            if "deletionTimestamp" in namespace["metadata"]:
                raise KubeError(403, f"namespace {write.namespace} is being terminated", reason="Forbidden")
        rules.check_names(document["metadata"], self.served.resource)

    def store(self, old: Object | None, new: Object, write: Write) -> Object:
        new = structural.with_defaults(self.schema, new) if write.applies else new
        new = self._created(new, write) if old is None else self._updated(old, new, write)
        if not builtin.known(self.served.resource) and (causes := validation.faults(self.schema, new)):
            raise status.faulty(self.served.resource, new["metadata"].get("name", ""), causes)
        if self.served.resource == CRDS:
            established = definitions.established(new)
            new = established if old is None else new
        if write.dry or new == old:
            return new
        stored = self._store.put(self.key, new)
        if self.served.resource == CRDS:
            if old is not None:
                self._catalog.unlearn(old)
            self._catalog.learn(stored)
        if old is not None:
            deletion.after_update(self._store, self.key, stored)
        elif stored["metadata"].get("ownerReferences"):
            names = stored["metadata"].get("namespace", ""), stored["metadata"]["name"]
            collect = asyncio.get_running_loop().call_later
            collect(_COLLECT_S, deletion.collect_orphan, self._store, self.key, *names)
        return stored

    def _created(self, new: Object, write: Write) -> Object:
        new = rules.created(new, self.served, lambda document: write.manage(None, document))
        if self.served.resource == PODS and new["spec"]["containers"][0].get("image") in self._catalog.process_images:
            new["metadata"]["annotations"] = {RUN: "process", **(new["metadata"].get("annotations") or {})}
        return new

    def _updated(self, old: Object, new: Object, write: Write) -> Object:
        return write.manage(old, rules.updated(old, new, self.served, write.subresource))

    def remove(self, current: Object, options: Object, write: Write) -> Object:
        resource, metadata = self.served.resource, current["metadata"]
        removed = status.success(resource, metadata["name"], metadata["uid"])
        if write.dry:
            return current
        if self.get(metadata.get("namespace", ""), metadata["name"]) is None:
            return removed  # with an owner that was deleted before it
        remaining = deletion.delete(self._store, resource, current, options)
        if remaining is not None:
            return remaining
        self._after_removal(current)
        return current if resource in _ANSWERED_WHOLE else removed

    def _after_removal(self, removed: Object) -> None:
        if self.served.resource == NAMESPACES:
            resources = [kind.served.resource for kind in self._catalog.stored()]
            deletion.empty_namespace(self._store, removed["metadata"]["name"], resources)
        if self.served.resource == CRDS:
            key = removed["spec"]["group"], removed["spec"]["names"]["plural"]
            for stored in list(self._store.of_kind(key)):
                self._store.remove(key, stored["metadata"].get("namespace", ""), stored["metadata"]["name"])
            self._catalog.unlearn(removed)

    def bind(self, namespace: str, name: str, binding: Any) -> Object:
        """Binds a pod to a node. A pod can be bound only once."""
        pod = self.get(namespace, name)
        if pod is None:
            raise status.not_found(PODS, name)
        if fault := shapes.mismatch(binding, shapes.BINDING):
            raise KubeError(400, f"Binding: {fault}")
        node = (binding.get("target") or {}).get("name")
        if not node:
            raise KubeError(422, 'Binding "" is invalid: target.name: Required value')
        message = ""
        if pod["spec"].get("nodeName"):
            message = f"pod {name} is already assigned to node {pod['spec']['nodeName']!r}"
        elif defaults.gates_of(pod["spec"]):
            message = f"pod {name} has non-empty .spec.schedulingGates"
        elif "deletionTimestamp" in pod["metadata"]:
            message = f"pod {name} is being deleted, cannot be assigned to a host"
        if message:
            raise KubeError(409, f'Operation cannot be fulfilled on pods/binding "{name}": {message}')
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": rules.timestamp()}
        rest = [c for c in pod["status"].get("conditions") or [] if c.get("type") != "PodScheduled"]
        spec, state = {**pod["spec"], "nodeName": node}, {**pod["status"], "conditions": [*rest, scheduled]}
        self._store.put(self.key, {**pod, "spec": spec, "status": state})
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
