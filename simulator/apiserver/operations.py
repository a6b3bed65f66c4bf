"""The verbs of an API server on its store: plain calls that return objects or raise `KubeError`. No HTTP here."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from fleet.kube import managed, patches, scale, shapes, status, structural
from fleet.kube.discovery import Served
from fleet.kube.resources import CRDS, NAMESPACES, PODS, SERVICE_ACCOUNTS, SERVICES, VOLUME_CLAIMS
from fleet.kube.status import KubeError
from simulator.apiserver import definitions, deletion, rules, writes
from simulator.apiserver.catalog import Catalog
from simulator.apiserver.lists import Wanted, in_version
from simulator.apiserver.store import Object, Store
from simulator.apiserver.writes import Write
from simulator.images import RUN

SYSTEM_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
MERGE, JSON, STRATEGIC = (
    f"application/{style}+json" for style in ("merge-patch", "json-patch", "strategic-merge-patch")
)
_TOLD_WHOLE = (PODS, SERVICES, VOLUME_CLAIMS, SERVICE_ACCOUNTS)
"""Kinds whose deletion is answered with the object, as it last was."""
_PATCHES = {JSON: patches.json_patch, MERGE: patches.merge, STRATEGIC: patches.strategic}


class Operations:
    process_images: Collection[str] = ()
    """Pods of these images are marked as real processes when they are created."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self.store = store
        self.catalog = catalog
        for definition in store.of_kind((CRDS.group, CRDS.plural)):
            catalog.learn(definition)
        namespaces = catalog.find("", "v1", "namespaces")
        for name in SYSTEM_NAMESPACES:
            if namespaces and store.get(_kind(namespaces), "", name) is None:
                self.create(namespaces, "", {"metadata": {"name": name}})

    def get(self, served: Served, namespace: str, name: str) -> Object:
        found = self.store.get(_kind(served), namespace, name)
        if found is None:
            raise status.not_found(served.resource, name)
        return in_version(found, served.resource.api_version)

    def create(self, served: Served, namespace: str, body: Any, write: Write | None = None) -> Object:
        """A dry ``write``, here and below, does everything but the writing."""
        write, schema = write or Write(), self.catalog.schema(served)
        made = rules.checked(body, served.resource, namespace)
        self._check_namespace(served, namespace)
        made = writes.taken(made, served, schema, write)
        made["metadata"].pop("managedFields", None)
        return self._add(served, made, write, lambda new: writes.noted(None, new, served, schema, write))

    def _add(self, served: Served, made: Object, write: Write, noted: Callable[[Object], Object]) -> Object:
        made = rules.created(made, served, noted)
        if served.resource == PODS and made["spec"]["containers"][0].get("image") in self.process_images:
            made["metadata"]["annotations"] = {RUN: "process", **(made["metadata"].get("annotations") or {})}
        namespace, name = made["metadata"].get("namespace", ""), made["metadata"]["name"]
        if self.store.get(_kind(served), namespace, name) is not None:
            raise status.already_exists(served.resource, name)
        writes.judged(made, served, self.catalog.schema(served))
        if served.resource == CRDS:
            made = definitions.established(made)
        if write.options.dry:
            return made
        if served.resource == CRDS:
            self.catalog.learn(made)
        return self.store.put(_kind(served), made)

    def _check_namespace(self, served: Served, namespace: str) -> None:
        if not served.resource.namespaced:
            return
        found = self.store.get((NAMESPACES.group, NAMESPACES.plural), "", namespace)
        if found is None:
            raise status.not_found(NAMESPACES, namespace)
        if "deletionTimestamp" in found["metadata"]:
            raise KubeError(403, f"namespace {namespace} is being terminated", reason="Forbidden")

    def update(
        self, served: Served, namespace: str, name: str, body: Any, subresource: str = "", write: Write | None = None
    ) -> Object:
        return self._replace(served, self.get(served, namespace, name), body, subresource, write or Write())

    def _replace(self, served: Served, old: Object, body: Any, subresource: str, write: Write) -> Object:
        schema = self.catalog.schema(served)
        new = rules.checked(body, served.resource, old["metadata"].get("namespace", ""))
        new = rules.updated(old, writes.taken(new, served, schema, write, subresource), served, subresource)
        return self._write(served, old, writes.noted(old, new, served, schema, write, subresource), write)

    def patch(
        self,
        served: Served,
        namespace: str,
        name: str,
        patch: Any,
        subresource: str = "",
        style: str = MERGE,
        write: Write | None = None,
    ) -> Object:
        """``style`` is the content type of the patch."""
        old = self.get(served, namespace, name)
        return self._replace(served, old, self._patched(served, old, patch, style), subresource, write or Write())

    def _patched(self, served: Served, old: Object, patch: Any, style: str) -> Any:
        if style not in self.patch_styles(served):
            raise KubeError(415, f"the body of the request was in an unknown format - {style} is not accepted here")
        if style != JSON and not isinstance(patch, dict):
            raise KubeError(400, "the patch is not an object")
        try:
            return _PATCHES[style](old, patch)
        except patches.PatchError as e:
            raise KubeError(422, str(e)) from e

    def apply(
        self, served: Served, namespace: str, name: str, body: Any, subresource: str, write: Write
    ) -> tuple[int, Object]:
        """Server-side: creates what is not there, but not through a subresource."""
        schema, live = self.catalog.schema(served), self.store.get(_kind(served), namespace, name)
        config = rules.checked(
            managed.checked(body, served.resource, name, new=live is None), served.resource, namespace
        )
        if live is None and subresource:
            raise status.not_found(served.resource, name)
        self._check_namespace(served, namespace)
        made = writes.applied(live, config, served, schema, write, subresource)
        made = structural.with_defaults(schema, made)
        if live is None:
            return 201, self._add(served, made, write, lambda new: new)
        new = rules.updated(live, {**made, "metadata": {**made["metadata"], **_version(config)}}, served, subresource)
        if subresource:
            new["metadata"] = {**new["metadata"], "managedFields": made["metadata"].get("managedFields", [])}
        return 200, self._write(served, live, new, write)

    def scale(self, served: Served, namespace: str, name: str) -> Object:
        return scale.scale_of(served.scale or {}, self.get(served, namespace, name))

    def rescale(self, served: Served, namespace: str, name: str, wanted: Any, style: str, write: Write) -> Object:
        """``style`` of a patch of the Scale; empty when it is replaced."""
        old, paths = self.get(served, namespace, name), served.scale or {}
        if style:
            wanted = self._patched(served, scale.scale_of(paths, old), wanted, style)
        made = self._replace(served, old, scale.scaled(paths, old, wanted, served.resource), "", write)
        return scale.scale_of(paths, made)

    def patch_styles(self, served: Served) -> list[str]:
        return [style for style in _PATCHES if style != STRATEGIC or not self.catalog.custom(served.resource.group)]

    def _write(self, served: Served, old: Object, new: Object, write: Write) -> Object:
        writes.judged(new, served, self.catalog.schema(served))
        if served.resource == CRDS:
            definitions.established(new)
        if write.options.dry or new == old:
            return new
        stored = self.store.put(_kind(served), new)
        deletion.after_update(self.store, _kind(served), stored)
        if served.resource == CRDS:
            self.catalog.unlearn(old)
            self.catalog.learn(stored)
        return stored

    def delete(self, served: Served, namespace: str, name: str, options: Any) -> Object:
        """The object while it still stands, else a Status of success."""
        found = self.get(served, namespace, name)
        if fault := shapes.mismatch(options, shapes.DELETE_OPTIONS):
            raise KubeError(400, f"DeleteOptions: {fault}")
        if options.get("dryRun"):
            return found
        left = deletion.delete(self.store, served.resource, found, options)
        if left is None:
            self._after_removal(served, found)
            if served.resource in _TOLD_WHOLE:
                return found
            return status.success(served.resource, name, found["metadata"]["uid"])
        return left

    def delete_collection(self, served: Served, namespace: str, wanted: Wanted, options: Any) -> None:
        for found in [each for each in self.store.of_kind(_kind(served), namespace) if wanted.takes(each)]:
            metadata = found["metadata"]
            if self.store.get(_kind(served), metadata.get("namespace", ""), metadata["name"]) is not None:
                self.delete(served, metadata.get("namespace", ""), metadata["name"], options)

    def _after_removal(self, served: Served, found: Object) -> None:
        if served.resource == NAMESPACES:
            every = [each.resource for each in self.catalog]
            deletion.empty_namespace(self.store, found["metadata"]["name"], every)
        if served.resource == CRDS:
            kind = (found["spec"]["group"], found["spec"]["names"]["plural"])
            for each in list(self.store.of_kind(kind)):
                self.store.remove(kind, each["metadata"].get("namespace", ""), each["metadata"]["name"])
            self.catalog.unlearn(found)

    def bind(self, served: Served, namespace: str, name: str, binding: Any) -> Object:
        """Puts a pod on a node, once."""
        pod = self.get(served, namespace, name)
        if fault := shapes.mismatch(binding, shapes.BINDING):
            raise KubeError(400, f"Binding: {fault}")
        node = (binding.get("target") or {}).get("name")
        if not node:
            raise KubeError(422, 'Binding "" is invalid: target.name: Required value')
        if pod["spec"].get("nodeName"):
            message = f"pod {name} is already assigned to node {pod['spec']['nodeName']!r}"
            raise KubeError(409, f'Operation cannot be fulfilled on pods/binding "{name}": {message}')
        if "deletionTimestamp" in pod["metadata"]:
            message = f"pod {name} is being deleted, cannot be assigned to a host"
            raise KubeError(409, f'Operation cannot be fulfilled on pods/binding "{name}": {message}')
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": rules.timestamp()}
        rest = [c for c in pod["status"].get("conditions") or [] if c.get("type") != "PodScheduled"]
        bound = {
            **pod,
            "spec": {**pod["spec"], "nodeName": node},
            "status": {**pod["status"], "conditions": [*rest, scheduled]},
        }
        self.store.put((PODS.group, PODS.plural), bound)
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}

    def collect(self, served: Served, found: Object) -> None:
        """To be called some time after a creation: removes objects whose owners are gone."""
        metadata = found["metadata"]
        deletion.collect_orphan(self.store, _kind(served), metadata.get("namespace", ""), metadata["name"])


def _version(config: Object) -> Object:
    """The version an apply insists on, if it does."""
    version = config["metadata"].get("resourceVersion")
    return {"resourceVersion": version} if version else {}


def _kind(served: Served) -> tuple[str, str]:
    return served.resource.group, served.resource.plural
