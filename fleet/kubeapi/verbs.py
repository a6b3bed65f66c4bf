"""The verbs of objects: who may, what is there now, which service does it, what is shown of it afterwards.

Runs in a thread, in the caller's name. A dry run does everything in a transaction that is then taken back.
"""

import re
import secrets
from datetime import datetime
from typing import Any

from django.db import transaction

from fleet.kube import managed, patches, scale, status, strictness, structural
from fleet.kube.bodies import Body
from fleet.kube.options import APPLY_PATCH, WriteOptions
from fleet.kube.status import KubeError
from fleet.kubeapi import deletion, lists, owners
from fleet.kubeapi.catalog import Target
from fleet.kubeapi.kinds import NAME, NOT_ALLOWED, Object, Write
from fleet.kubeapi.request import Request
from fleet.kubeapi.tables import table
from fleet.services import access

_PATCHES = {
    "application/merge-patch+json": patches.merge,
    "application/strategic-merge-patch+json": patches.strategic,
    "application/json-patch+json": patches.json_patch,
}
_VERSION = re.compile(r"[0-9]{1,18}")


class Verbs:
    """One request's."""

    def __init__(self, target: Target, asked: Request, user: Any, now: datetime) -> None:
        self._target, self._asked, self._user = target, asked, user
        self._kind, self._resource = target.kind, target.kind.served.resource
        self._write = Write(user.get_username(), now, target.namespace, asked.warnings)

    def answer(self) -> tuple[int, Object | lists.Stream]:
        verb = self._verb()
        if verb not in self._kind.verbs:
            raise self._kind.not_allowed(verb)
        if verb in ("get", "list"):
            return 200, self._read(verb)
        options = self._asked.options
        with transaction.atomic():
            code, shown = self._written(verb, options)
            if options.dry:
                transaction.set_rollback(True)
        return code, shown

    def _verb(self) -> str:
        named = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
        found = (
            named.get(self._asked.method)
            if self._target.name
            else {"GET": "list", "POST": "create", "DELETE": "deletecollection"}.get(self._asked.method)
        )
        scaled = self._target.subresource == "scale" and found in ("get", "update", "patch")
        if found and self._target.subresource == "status" and found != "get":
            raise KubeError(
                405, f"{NOT_ALLOWED.message}: a status is what the fleet and its clusters say, nobody writes it"
            )
        if not found or (self._target.subresource and found != "get" and not scaled):
            raise NOT_ALLOWED
        return found

    def _read(self, verb: str) -> Object | lists.Stream:
        if verb == "get":
            home = self._kind.home(self._target.namespace, self._target.name)
            access.require(self._user, self._kind.read_verb, self._kind.name, home)
            found = self._current()
            if self._target.subresource == "scale":
                return scale.scale_of(self._kind.served.scale or {}, found)
            if self._asked.wants_table:
                return self._table([found], {"resourceVersion": _version(found)})
            return owners.shown([found])[0]
        namespaces = readable(self._target, self._user)
        items, metadata = lists.page(self._kind, namespaces, self._asked)
        every = lists.rest_of(self._kind, namespaces, self._asked, items)
        if every is not None:
            return lists.Stream(self._document([], metadata), every, self._shown)
        return self._document(items, metadata)

    def _document(self, items: list[Object], metadata: Object) -> Object:
        if self._asked.wants_table:
            return self._table(items, metadata)
        return lists.document(self._kind, owners.shown(items), metadata)

    def _shown(self, items: list[Object]) -> list[Object]:
        document = self._document(items, {})
        shown: list[Object] = document["rows" if self._asked.wants_table else "items"]
        return shown

    def _table(self, items: list[Object], metadata: Object) -> Object:
        include = self._asked.query.get("includeObject", "")
        return table(self._kind, items, metadata, self._write.now, definitions=True, include=include)

    def _written(self, verb: str, options: WriteOptions) -> tuple[int, Object]:
        right = "delete" if verb in ("delete", "deletecollection") else "apply"
        access.require(self._user, right, self._kind.name, self._target.namespace)
        if verb == "create":
            return 201, self._create(self._taken(self._asked.read(), options), options)
        if verb == "delete":
            return 200, self._delete()
        if verb == "deletecollection":
            return 200, self._delete_all()
        if verb == "patch" and self._asked.content_type == APPLY_PATCH and not self._target.subresource:
            return self._apply(options)
        current = self._current()
        if self._target.subresource:
            return 200, self._rescale(current, options)
        body = Body(self._patched(current)) if verb == "patch" else self._asked.read()
        return 200, self._replace(current, self._taken(body, options), options)

    def _taken(self, body: Body, options: WriteOptions) -> Object:
        """The object sent; of fields nobody knows or that stand twice the person is told, or it is refused."""
        if not isinstance(body.value, dict):
            raise KubeError(400, "the object provided is unrecognized: it is not an object")
        self._asked.warnings += strictness.checked(body, self._kind.schema, self._resource, options.validation)
        return self._placed(structural.pruned(self._kind.kept, body.value))

    def _create(self, document: Object, options: WriteOptions) -> Object:
        made = self._made(document)
        return made if made["metadata"]["uid"] == made["metadata"]["name"] else self._noted(None, made, options)

    def _made(self, document: Object) -> Object:
        metadata = document["metadata"]
        if metadata.get("generateName") and not metadata.get("name"):
            metadata["name"] = _made_up(metadata["generateName"])
        self._asked.meant, name = document, metadata.get("name")
        if isinstance(name, str) and self._find(name) is not None:
            raise status.already_exists(self._resource, name)
        return self._kind.create(document, self._write) or self._current(str(name))

    def _noted(self, old: Object | None, new: Object, options: WriteOptions) -> Object:
        return owners.note(self._kind, old, new, options, self._write.now)

    def _apply(self, options: WriteOptions) -> tuple[int, Object]:
        """On the server's side: creates what is not there."""
        body, live = self._asked.read(), self._find(self._target.name)
        applied = managed.checked(body.value, self._resource, self._target.name, new=live is None)
        config = self._taken(Body(applied, body.duplicates), options)
        made = owners.applied(self._kind, live, config, options, self._write.now)
        if live is None:
            return 201, owners.keep_applied(self._made(self._placed(made)), made)
        asked = config["metadata"].get("resourceVersion")
        wanted = {**made, "metadata": {**made["metadata"], **({"resourceVersion": asked} if asked else {})}}
        return 200, owners.keep_applied(self._replaced(live, wanted), made)

    def _rescale(self, current: Object, options: WriteOptions) -> Object:
        paths = self._kind.served.scale or {}
        wanted: Any = self._asked.body()
        if self._asked.method == "PATCH":
            wanted = self._patched(scale.scale_of(paths, current))
        made = self._replace(current, scale.scaled(paths, current, wanted, self._resource), options)
        return scale.scale_of(paths, made)

    def _patched(self, current: Object) -> Object:
        patch = _PATCHES.get(self._asked.content_type)
        if patch is None:
            known = ", ".join(_PATCHES)
            raise KubeError(415, f"the body of the request was in an unknown format - accepted media types: {known}")
        try:
            document = patch(current, self._asked.body())
        except patches.PatchError as e:
            raise KubeError(422, str(e)) from e
        if not isinstance(document, dict):
            raise KubeError(422, "the patched object is no object")
        return document

    def _replace(self, current: Object, document: Object, options: WriteOptions) -> Object:
        return self._noted(current, self._replaced(current, document), options)

    def _replaced(self, current: Object, document: Object) -> Object:
        """Under the version that was read: older ones are refused, none at all means any."""
        document, name = self._placed(document), self._target.name
        metadata = document["metadata"]
        if metadata.get("name") != name:
            raise KubeError(
                400, f"the name of the object ({metadata.get('name')}) does not match the name on the URL ({name})"
            )
        given = str(metadata.get("resourceVersion") or "")
        if given and (not _VERSION.fullmatch(given) or int(given) < int(_version(current))):
            raise status.changed(self._resource, name)
        if metadata.get("uid", current["metadata"]["uid"]) != current["metadata"]["uid"]:
            message = "Precondition failed: UID in the object sent is that of another object"
            raise status.conflict(self._resource, name, message)
        self._asked.meant = document
        self._kind.update(document, self._write)
        return self._current()

    def _placed(self, document: Object) -> Object:
        """With the kind, version and namespace of the URL; another one in the document is refused."""
        metadata = document.get("metadata")
        if not isinstance(metadata, dict):
            raise KubeError(400, "metadata must be an object with a name")
        meant = (self._resource.api_version, self._kind.name)
        said = (document.get("apiVersion") or meant[0], document.get("kind") or meant[1])
        if said != meant:
            raise KubeError(400, f"{said[0]} {said[1]} was sent to {self._resource.api_version} {self._kind.name}")
        metadata = {**metadata}
        if self._resource.namespaced:
            metadata["namespace"] = metadata.get("namespace") or self._target.namespace
            if metadata["namespace"] != self._target.namespace:
                raise KubeError(
                    400, "the namespace of the provided object does not match the namespace sent on the request"
                )
        return {**document, "apiVersion": meant[0], "kind": meant[1], "metadata": metadata}

    def _delete(self) -> Object:
        wanted, current = deletion.options(self._asked.document()), self._current()
        owners.forget(current["metadata"]["uid"])
        if deletion.delete(self._kind, current, wanted, self._write):
            return deletion.gone(self._resource, current)
        return self._current()

    def _delete_all(self) -> Object:
        """Of the namespace, or of a kind that has none; what the selectors take."""
        if self._resource.namespaced and not self._target.namespace:
            raise NOT_ALLOWED
        wanted = deletion.options(self._asked.document())
        namespaces = readable(self._target, self._user)
        items, metadata = lists.page(self._kind, namespaces, self._asked)
        if every := lists.rest_of(self._kind, namespaces, self._asked, items):
            items = list(every)
        for each in items:
            deletion.delete(self._kind, each, wanted, self._write)
        return lists.document(self._kind, items, metadata)

    def _current(self, name: str = "") -> Object:
        found = self._find(name or self._target.name)
        if found is None:
            raise status.not_found(self._resource, name or self._target.name)
        return found

    def _find(self, name: str) -> Object | None:
        namespaces = frozenset({self._target.namespace}) if self._resource.namespaced else None
        found = self._kind.objects(namespaces, None, {NAME: name})
        return next((each for each in found if each["metadata"]["name"] == name), None)


def _made_up(prefix: Any) -> str:
    """A name that begins like this, in letters of which no words are made."""
    return str(prefix) + "".join(secrets.choice("bcdfghjklmnpqrstvwxz2456789") for _ in range(5))


def readable(target: Target, user: Any) -> frozenset[str] | None:
    """The namespaces a list of this target shows (None: all); refused when there are none."""
    kind = target.kind
    if access.may(user, kind.read_verb, kind.name, target.namespace):
        return frozenset({target.namespace}) if target.namespace else None
    mine = access.visible_namespaces(user) or frozenset()
    allowed = frozenset(each for each in mine if access.may(user, kind.read_verb, kind.name, each))
    if target.namespace or not allowed:
        raise access.refusal(user, kind.read_verb, kind.name, target.namespace)
    return allowed


def _version(shown: Object) -> str:
    return str(shown["metadata"]["resourceVersion"])
