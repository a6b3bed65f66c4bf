"""The verbs on objects: a write is parsed, checked against the URL and the current object, and passed to the kind's storage.

Lists and watches are in `lists` and `watching`. A write is authorized before its body is parsed.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from fleet.kube import discovery, scale
from fleet.kube.requests import status
from fleet.kube.requests.bodies import Body
from fleet.kube.requests.options import APPLY_PATCH, WriteOptions
from fleet.kube.requests.status import KubeError
from fleet.kube.schema import builtin, shapes
from fleet.kube.server import lists
from fleet.kube.server.kinds import History, Kind, Namespaces, Object, Write, method_not_allowed
from fleet.kube.server.paths import Target
from fleet.kube.server.request import Request
from fleet.kube.writes import managed, patches, strictness
from fleet.kube.writes.managed import APPLY, UPDATE, Manager

_STRATEGIC = "application/strategic-merge-patch+json"
_JSON = "application/json-patch+json"
_PATCHES: dict[str, Callable[[Any, Any], Any]] = {
    "application/merge-patch+json": patches.merge,
    _STRATEGIC: patches.strategic,
    _JSON: patches.json_patch,
}
_ON_OBJECTS = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_ON_COLLECTIONS = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""Of generated names: they spell no words."""
_PROPAGATION = ("Background", "Foreground", "Orphan")


def verb_of(request: Request, target: Target[Any]) -> str:
    """The Kubernetes verb of a request; raises MethodNotAllowed where its method has none."""
    if target.subresource:
        verb = "create" if request.method == "POST" else _ON_OBJECTS.get(request.method, "")
    else:
        verb = (_ON_OBJECTS if target.name else _ON_COLLECTIONS).get(request.method, "")
    if not verb:
        raise method_not_allowed()
    return "watch" if verb == "list" and request.is_watch else verb


def require_taken(verb: str, target: Target[Any]) -> None:
    """Raises MethodNotAllowed where the kind does not take the verb. Asked after the caller's rights, as a real server does."""
    kind, subresource = target.kind, target.subresource
    if subresource and verb not in discovery.subresource_verbs(kind.shown, subresource):
        raise kind.not_allowed(verb, subresource)
    if not subresource and verb not in kind.verbs:
        raise kind.not_allowed(verb)


def delete_options(request: Request) -> Object:
    """The options of a delete, from its body and its query; raises BadRequest or Invalid."""
    options: Object = dict(request.document())
    if fault := shapes.mismatch(options, shapes.DELETE_OPTIONS):
        raise KubeError(400, f"DeleteOptions: {fault}")
    if request.query.get("dryRun"):
        options["dryRun"] = [request.query["dryRun"]]
    if "propagationPolicy" in request.query:
        options["propagationPolicy"] = request.query["propagationPolicy"]
    if request.query.get("gracePeriodSeconds"):
        options["gracePeriodSeconds"] = request.number("gracePeriodSeconds")
    policy = options.get("propagationPolicy")
    if policy and policy not in _PROPAGATION:
        known = ", ".join(f'"{policy}"' for policy in _PROPAGATION)
        message = f'propagationPolicy: Unsupported value: "{policy}": supported values: {known}'
        raise KubeError(422, f'DeleteOptions.meta.k8s.io "" is invalid: {message}')
    if options.get("dryRun") not in (None, [], ["All"]):
        raise KubeError(
            422, 'DeleteOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: supported values: "All"'
        )
    return options


def is_dry(request: Request) -> bool:
    """Whether the write is a dry run. A delete may request that in its body as well."""
    return request.options.dry or (request.method == "DELETE" and bool(delete_options(request).get("dryRun")))


def _is_about_managers(patch: Any) -> bool:
    """Whether the patch changes ``managedFields``, as `kubectl apply --server-side` does after a client-side apply."""
    if isinstance(patch, list):
        paths = (str(operation.get("path")) for operation in patch if isinstance(operation, dict))
        return any(path.startswith("/metadata/managedFields") for path in paths)
    metadata = patch.get("metadata") if isinstance(patch, dict) else None
    return isinstance(metadata, dict) and "managedFields" in metadata


@dataclass(slots=True)
class Verbs:
    """Carries out the verb of one request."""

    history: History
    target: Target[Any]
    request: Request
    by: str
    now: datetime
    pick: Callable[[str], str]
    write: Write = field(init=False)

    @property
    def kind(self) -> Kind:
        kind: Kind = self.target.kind
        return kind

    def read(self, verb: str, namespaces: Namespaces) -> Object | lists.Stream:
        if verb == "list":
            return lists.answer(self.kind, self.history, namespaces, self.request, self._listed)
        current = self._current()
        if self.target.subresource == "scale":
            return scale.scale_of(self.kind.served.scale or {}, current)
        if self.request.wants_table:
            return self._table([current], {"resourceVersion": current["metadata"]["resourceVersion"]})
        return self.kind.managed([current])[0]

    def _listed(self, items: list[Object], metadata: Object) -> Object:
        if self.request.wants_table:
            return self._table(items, metadata)
        return lists.document(self.kind, self.kind.managed(items), metadata)

    def _table(self, items: list[Object], metadata: Object) -> Object:
        return lists.table(self.kind, items, metadata, self.request, self.now)

    def change(self, verb: str, namespaces: Namespaces) -> tuple[int, Object]:
        """Does what a write asks; a dry run is taken back by the storage."""
        request, target, options = self.request, self.target, self.request.options
        dry = is_dry(request)
        self.write = Write(self.by, self.now, target.namespace, target.subresource, dry, request.warnings)
        with self.history.transaction(dry):
            if verb == "create":
                return 201, self._create(options)
            if verb == "delete":
                return 200, self._delete(self._current(), delete_options(request))
            if verb == "deletecollection":
                return 200, self._delete_all(namespaces)
            if verb == "patch" and request.content_type == APPLY_PATCH and target.subresource != "scale":
                return self._apply(options)
            current = self._current()
            if target.subresource == "scale":
                return 200, self._rescale(current, options)
            body = Body(self._patched(current)) if verb == "patch" else request.read()
            return 200, self._replace(current, self._admitted(body, options), options)

    def _admitted(self, body: Body, options: WriteOptions) -> Object:
        """The object in the request with defaults and without unknown fields. These are warned of, or refused."""
        document = self._with_url_identity(body.value)
        schema, resource = self.kind.schema, self.kind.served.resource
        # What is only shown, as the status of the fleet, has fields that the definition need not know.
        written = Body(self.kind.written(document), body.duplicates)
        self.request.warnings += strictness.checked(written, schema, resource, options.validation)
        return self.kind.admitted(document, self.write)

    def _with_url_identity(self, document: Any) -> Object:
        """The document with the kind, version and namespace of the URL. Raises BadRequest if it names others."""
        if not isinstance(document, dict):
            raise KubeError(400, "the object provided is unrecognized: it is not an object")
        resource, metadata = self.kind.served.resource, document.get("metadata")
        if not isinstance(metadata, dict):
            raise KubeError(400, "metadata must be an object with a name")
        for key in ("labels", "annotations"):
            if not isinstance(metadata.get(key) or {}, dict):
                raise KubeError(400, f"metadata.{key} must be an object of text values")
        expected = (resource.api_version, resource.kind)
        sent = (document.get("apiVersion") or expected[0], document.get("kind") or expected[1])
        if sent != expected:
            raise KubeError(400, f"{sent[0]} {sent[1]} was sent to {expected[0]} {expected[1]}")
        metadata = {**metadata}
        if resource.namespaced:
            metadata["namespace"] = metadata.get("namespace") or self.target.namespace
            if metadata["namespace"] != self.target.namespace:
                message = "the namespace of the provided object does not match the namespace sent on the request"
                raise KubeError(400, message)
        return {**document, "apiVersion": expected[0], "kind": expected[1], "metadata": metadata}

    def _create(self, options: WriteOptions) -> Object:
        document = self._admitted(self.request.read(), options)
        self.write.manage = self._updating(options)
        document["metadata"].pop("managedFields", None)
        return self._add(document)

    def _add(self, document: Object) -> Object:
        metadata = document["metadata"]
        metadata.pop("resourceVersion", None)
        if not metadata.get("name") and metadata.get("generateName"):
            suffix = "".join(self.pick(_LETTERS) for _ in range(5))
            metadata["name"] = f"{str(metadata['generateName'])[:58]}{suffix}"
        self.request.intended, name = document, metadata.get("name")
        self.kind.check_new(document, self.write)
        if isinstance(name, str) and self.kind.get(self.target.namespace, name) is not None:
            raise status.already_exists(self.kind.served.resource, name)
        return self.kind.store(None, document, self.write)

    def _apply(self, options: WriteOptions) -> tuple[int, Object]:
        """Server-side apply. Creates a missing object, except through a subresource."""
        kind, resource, name = self.kind, self.kind.served.resource, self.target.name
        live, body = kind.get(self.target.namespace, name), self.request.read()
        config = managed.checked(body.value, resource, name, new=live is None)
        if live is None and self.target.subresource:
            raise status.not_found(resource, name)
        self.write.applies = True
        config = self._admitted(Body(config, body.duplicates), options)
        before = builtin.always(resource) if live is None else kind.written(kind.managed([live])[0])
        manager = self._manager(APPLY, options)
        applied = managed.applied(kind.schema, before, config, manager, self.now, force=options.force)
        entries = applied["metadata"].get("managedFields") or []
        self.write.manage = lambda _old, new: managed.with_entries(new, entries)
        if live is None:
            return 201, self._add(applied)
        version = config["metadata"].get("resourceVersion")
        metadata = {**applied["metadata"], **({"resourceVersion": version} if version else {})}
        return 200, self._stored(live, {**applied, "metadata": metadata})

    def _manager(self, operation: str, options: WriteOptions) -> Manager:
        resource = self.kind.served.resource
        return Manager(options.manager, operation, resource.api_version, self.write.subresource)

    def _updating(self, options: WriteOptions) -> Callable[[Object | None, Object], Object]:
        """A function that records the writer as the manager of the fields it changed. For all writes except apply."""

        def manage(old: Object | None, new: Object) -> Object:
            before = builtin.always(self.kind.served.resource) if old is None else old
            return managed.updated(self.kind.schema, before, new, self._manager(UPDATE, options), self.now)

        return manage

    def _rescale(self, current: Object, options: WriteOptions) -> Object:
        paths = self.kind.served.scale or {}
        scale_sent: Any = self.request.body()
        if self.request.method == "PATCH":
            scale_sent = self._patched(scale.scale_of(paths, current))
        self.write.subresource = ""
        document = scale.scaled(paths, current, scale_sent, self.kind.served.resource)
        return scale.scale_of(paths, self._replace(current, document, options))

    def _patched(self, current: Object) -> Object:
        style, accepted = self.request.content_type, self.kind.patches
        if style not in accepted:
            known = ", ".join(accepted)
            raise KubeError(415, f"the body of the request was in an unknown format - accepted media types: {known}")
        patch = self.request.body()
        if style != _JSON and not isinstance(patch, dict):
            raise KubeError(400, "the patch is not an object")
        if _is_about_managers(patch):
            current = self.kind.managed([current])[0]
        try:
            document = _PATCHES[style](current, patch)
        except patches.PatchError as e:
            raise KubeError(422, str(e)) from e
        if not isinstance(document, dict):
            raise KubeError(422, "the result of the patch is not an object")
        return document

    def _replace(self, current: Object, document: Object, options: WriteOptions) -> Object:
        self.write.manage = self._updating(options)
        return self._stored(current, document)

    def _stored(self, current: Object, document: Object) -> Object:
        """Stores the object. A resourceVersion other than the current one is a conflict; without one there is no check."""
        metadata, name, resource = document["metadata"], self.target.name, self.kind.served.resource
        if metadata.get("name") != name:
            message = f"the name of the object ({metadata.get('name')}) does not match the name on the URL ({name})"
            raise KubeError(400, message)
        version = str(metadata.get("resourceVersion") or "")
        if version and self.kind.has_changed(current, version):
            raise status.changed(resource, name)
        uid, held = metadata.get("uid"), current["metadata"]["uid"]
        if uid not in (None, "", held):
            message = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {held}"
            raise status.conflict(resource, name, message)
        self.request.intended = document
        return self.kind.store(current, document, self.write)

    def _delete(self, current: Object, options: Object) -> Object:
        metadata, preconditions = current["metadata"], options.get("preconditions") or {}
        for name, word in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
            if preconditions.get(name) not in (None, metadata[name]):
                held = f"{word} in precondition: {preconditions[name]}, {word} in object meta: {metadata[name]}"
                raise status.conflict(self.kind.served.resource, metadata["name"], f"Precondition failed: {held}")
        return self.kind.remove(current, options, self.write)

    def _delete_all(self, namespaces: Namespaces) -> Object:
        """The objects of the namespace, or of a kind that has none, that the selectors select."""
        if self.kind.served.resource.namespaced and not self.target.namespace:
            raise method_not_allowed()
        options = delete_options(self.request)
        items, metadata = lists.page(self.kind, self.history, namespaces, self.request)
        rest = lists.rest_of(self.kind, self.history, namespaces, self.request, items)
        items = items if rest is None else list(rest)
        for current in items:
            self._delete(current, options)
        return lists.document(self.kind, items, metadata)

    def _current(self) -> Object:
        current = self.kind.get(self.target.namespace, self.target.name)
        if current is None:
            raise status.not_found(self.kind.served.resource, self.target.name)
        return current
