"""The verbs of objects: who may, what is there now, which service does it, what is shown of it afterwards.

Runs in a thread, in the caller's name. A dry run does everything in a transaction that is then taken back.
"""

import secrets
from datetime import datetime
from typing import Any

from django.db import transaction

from fleet.kube import patches, status
from fleet.kube.status import KubeError
from fleet.kubeapi import deletion, lists
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
_GIVEN_BACK = {"uid": "UID", "creationTimestamp": "creationTimestamp"}
"""What must be as it is when it comes back with a write."""


class Verbs:
    """One request's."""

    def __init__(self, target: Target, asked: Request, user: Any, now: datetime) -> None:
        self._target, self._asked, self._user = target, asked, user
        self._kind, self._resource = target.kind, target.kind.served.resource
        self._write = Write(user.get_username(), now, target.namespace, asked.warnings)

    def answer(self) -> tuple[int, Object]:
        verb = self._verb()
        if verb not in self._kind.verbs:
            raise NOT_ALLOWED
        if verb in ("get", "list"):
            return 200, self._read(verb)
        with transaction.atomic():
            code, shown = self._written(verb)
            if self._asked.dry_run:
                transaction.set_rollback(True)
        return code, shown

    def _verb(self) -> str:
        named = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
        found = (
            named.get(self._asked.method)
            if self._target.name
            else {"GET": "list", "POST": "create", "DELETE": "deletecollection"}.get(self._asked.method)
        )
        if not found:
            raise NOT_ALLOWED
        return found

    def _read(self, verb: str) -> Object:
        if verb == "get":
            access.require(self._user, self._kind.read_verb, self._kind.name, self._target.namespace)
            found = self._current()
            if self._asked.wants_table:
                return self._table([found], {"resourceVersion": _version(found)})
            return found
        items, metadata = lists.page(self._kind, readable(self._target, self._user), self._asked)
        if self._asked.wants_table:
            return self._table(items, metadata)
        return lists.document(self._kind, items, metadata)

    def _table(self, items: list[Object], metadata: Object) -> Object:
        include = self._asked.query.get("includeObject", "")
        return table(self._kind, items, metadata, self._write.now, definitions=True, include=include)

    def _written(self, verb: str) -> tuple[int, Object]:
        right = "delete" if verb in ("delete", "deletecollection") else "apply"
        access.require(self._user, right, self._kind.name, self._target.namespace)
        match verb:
            case "create":
                return self._create()
            case "delete":
                return 200, self._delete()
            case "deletecollection":
                return 200, self._delete_all()
            case "patch":
                return 200, self._replace(self._current(), self._patched())
        document = self._asked.document()
        return 200, self._replace(self._current(), document)

    def _create(self) -> tuple[int, Object]:
        document = self._placed(self._asked.document())
        metadata = document["metadata"]
        if metadata.get("generateName") and not metadata.get("name"):
            metadata["name"] = _made_up(metadata["generateName"])
        self._asked.meant, name = document, metadata.get("name")
        if isinstance(name, str) and self._find(name) is not None:
            raise status.already_exists(self._resource, name)
        made = self._kind.create(document, self._write)
        return 201, made or self._current(str(name))

    def _patched(self) -> Object:
        patch = _PATCHES.get(self._asked.content_type)
        if patch is None:
            known = ", ".join(_PATCHES)
            raise KubeError(415, f"the body of the request was in an unknown format - accepted media types: {known}")
        try:
            document = patch(self._current(), self._asked.body())
        except patches.PatchError as e:
            raise KubeError(422, str(e)) from e
        if not isinstance(document, dict):
            raise KubeError(422, "the patched object is no object")
        return document

    def _replace(self, current: Object, document: Object) -> Object:
        """Under the version that was read: older ones are refused, none at all means any."""
        document, name = self._placed(document), self._target.name
        metadata = document["metadata"]
        if metadata.get("name") != name:
            raise KubeError(
                400, f"the name of the object ({metadata.get('name')}) does not match the name on the URL ({name})"
            )
        given = metadata.get("resourceVersion")
        if given and (not str(given).isdigit() or int(given) < int(_version(current))):
            raise status.changed(self._resource, name)
        for field in _GIVEN_BACK:
            if metadata.get(field, current["metadata"].get(field)) != current["metadata"].get(field):
                told = f"Precondition failed: {_GIVEN_BACK[field]} in the object sent is that of another object"
                raise status.conflict(self._resource, name, told)
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
        if deletion.delete(self._kind, current, wanted, self._write):
            return deletion.gone(self._resource, current)
        return self._current()

    def _delete_all(self) -> Object:
        """Of the namespace, or of a kind that has none; what the selectors take."""
        if self._resource.namespaced and not self._target.namespace:
            raise NOT_ALLOWED
        wanted = deletion.options(self._asked.document())
        items, metadata = lists.page(self._kind, readable(self._target, self._user), self._asked)
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
