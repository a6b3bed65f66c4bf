"""Which objects a list asks for, and its pages: each page of one list is taken of the same moment, whatever happens between.

A `continue` token is the version of that moment and the key after which the next page begins.
"""

import base64
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from fleet.kube import selectors, tables
from fleet.kube.discovery import Served
from fleet.kube.selectors import Selector
from fleet.kube.status import KubeError, expired
from simulator.apiserver.store import Key, Kind, Object, Store

_ALWAYS = frozenset({"metadata.name", "metadata.namespace"})
_FIELDS = {
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
_ELSEWHERE = {"status.successful": ("status", "succeeded"), "source": ("source", "component")}
_UNSET = {"spec.unschedulable": "false", "status.successful": "0"}
_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter."
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Whose labels and fields are like this."""

    labels: Selector = ()
    fields: Selector = ()

    def takes(self, found: Object) -> bool:
        if self.labels and not selectors.matches(self.labels, found["metadata"].get("labels") or {}):
            return False
        return not self.fields or selectors.matches(self.fields, {r.key: _field(found, r.key) for r in self.fields})


def wanted(query: dict[str, str], served: Served) -> Wanted:
    resource = served.resource
    try:
        labels = selectors.parse_labels(query.get("labelSelector", ""))
        fields = selectors.parse_fields(query.get("fieldSelector", ""))
    except selectors.SelectorError as e:
        raise KubeError(400, str(e)) from e
    known = _ALWAYS | _FIELDS.get((resource.group, resource.plural), set())
    for requirement in fields:
        if requirement.key not in known:
            raise KubeError(400, f"field label not supported: {requirement.key}")
    return Wanted(labels, fields)


def _field(found: Object, path: str) -> str:
    value: Any = found
    for part in _ELSEWHERE.get(path) or path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return str(value).lower()
    return _UNSET.get(path, "") if value is None else str(value)


def page(store: Store, served: Served, namespace: str, query: dict[str, str]) -> dict[str, Any]:
    """The list's answer; ``limit`` and ``continue`` as the query has them."""
    resource, asked = served.resource, wanted(query, served)
    limit = _limit(query)
    moment, after = _resumed(store, query["continue"]) if query.get("continue") else (store.version, ("", ""))
    kind = (resource.group, resource.plural)
    found = [each for each in _at(store, kind, namespace, moment) if _key(each) > after and asked.takes(each)]
    metadata: dict[str, Any] = {"resourceVersion": str(moment)}
    if limit and len(found) > limit:
        token = json.dumps([moment, *_key(found[limit - 1])]).encode()
        metadata["continue"] = base64.urlsafe_b64encode(token).decode()
        if not (asked.labels or asked.fields):
            metadata["remainingItemCount"] = len(found) - limit
        found = found[:limit]
    items = [in_version(each, resource.api_version) for each in found]
    return {"kind": served.list_kind, "apiVersion": resource.api_version, "metadata": metadata, "items": items}


def in_version(found: Object, api_version: str) -> Object:
    """In the version asked for; all versions of a kind are stored as one."""
    return found if found.get("apiVersion") == api_version else {**found, "apiVersion": api_version}


def printed(served: Served, answer: dict[str, Any], *, whole: bool) -> dict[str, Any]:
    """A list, or one object, as a table."""
    resource, items = served.resource, answer.get("items")
    columns = (
        tables.columns_from(served.printed) if served.printed else tables.columns_of(resource.group, resource.plural)
    )
    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
    found = [answer] if items is None else [{**kind, **each} for each in items]
    metadata = {"resourceVersion": answer["metadata"]["resourceVersion"]} if items is None else answer["metadata"]
    return tables.table(columns, found, metadata, datetime.now(UTC), whole=whole)


def _limit(query: dict[str, str]) -> int:
    text = query.get("limit") or "0"
    if not text.isascii() or not text.isdigit():
        raise KubeError(400, f"Invalid value: {text!r}: limit must be a number")
    return int(text)


def _resumed(store: Store, token: str) -> tuple[int, Key]:
    try:
        moment, namespace, name = json.loads(base64.urlsafe_b64decode(token.encode()))
        moment, after = int(moment), (str(namespace), str(name))
    except (ValueError, TypeError) as e:
        raise KubeError(400, "continue key is not valid") from e
    if moment < store.floor:
        raise expired(_TOO_OLD)
    return moment, after


def _key(found: Object) -> Key:
    return found["metadata"].get("namespace", ""), found["metadata"]["name"]


def _at(store: Store, kind: Kind, namespace: str, moment: int) -> list[Object]:
    """The objects as they were: those there are, with every later change taken back."""
    if moment >= store.version:
        return list(store.of_kind(kind, namespace))
    found = {_key(each): each for each in store.of_kind(kind, namespace)}
    for change in reversed(store.history):
        if change.version <= moment:
            break
        key = _key(change.after)
        if change.kind != kind or (namespace and key[0] != namespace):
            continue
        if change.before is None:
            found.pop(key, None)
        else:
            found[key] = change.before
    return [found[key] for key in sorted(found)]
