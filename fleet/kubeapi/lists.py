"""Which objects a list asks for, and its pages.

A `continue` token is the version of the first page and the key after which the next begins. Later pages may show later
changes; a watch from the list's version tells every one of them again, so nobody misses any.
"""

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from fleet import journal
from fleet.kube import reader, selectors
from fleet.kube.selectors import Selector
from fleet.kube.status import KubeError, expired
from fleet.kubeapi.kinds import Key, Kind, Object
from fleet.kubeapi.request import Request, encoded

_MATCHES = ("Exact", "NotOlderThan")
_ALWAYS = frozenset({"metadata.name", "metadata.namespace"})
_LATEST = 10**18
_TABLE_CHUNK, _TABLE_PAGE = 500, 2000
"""kubectl asks for 500 rows at a time and not more than five times a second: it would take 40 s to print 100,000."""
_PIECE = 500
"""Objects of a list without a limit that are kept at once."""
_LONGEST_PAGE = 2000
"""A server may give fewer than a request's limit."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Whose labels and fields are like this."""

    labels: Selector = ()
    fields: Selector = ()

    @property
    def everything(self) -> bool:
        return not (self.labels or self.fields)

    @property
    def exact(self) -> dict[str, str]:
        """The fields that must be one value."""
        return {each.key: each.values[0] for each in self.fields if each.operator == "In"}

    def may_take(self, names: Object) -> bool:
        """Of an object of which only names are known."""
        known = [each for each in self.fields if each.key in _ALWAYS]
        return selectors.matches(tuple(known), {each.key: _field(names, each.key) for each in known})

    def takes(self, found: Object) -> bool:
        if self.labels and not selectors.matches(self.labels, found["metadata"].get("labels") or {}):
            return False
        return not self.fields or selectors.matches(self.fields, {r.key: _field(found, r.key) for r in self.fields})


def wanted(asked: Request, kind: Kind) -> Wanted:
    try:
        labels = selectors.parse_labels(asked.query.get("labelSelector", ""))
        fields = selectors.parse_fields(asked.query.get("fieldSelector", ""))
    except selectors.SelectorError as e:
        raise KubeError(400, str(e)) from e
    for requirement in fields:
        if requirement.key not in _ALWAYS | kind.field_labels:
            raise KubeError(400, f"field label not supported: {requirement.key}")
    return Wanted(labels, fields)


def _field(found: Object, path: str) -> str:
    value: Any = found
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return "" if value is None else str(value)


@dataclass(frozen=True, slots=True)
class Stream:
    """A long list without a limit, which no process holds whole: its pieces are made one by one, as its reader takes them.

    Like later pages, later pieces may show later changes, which a watch from the list's version repeats.
    """

    document: Object
    """With an empty list of items, or of rows, for its last field."""
    items: Iterator[Object]
    render: Callable[[list[Object]], list[Object]]

    def pieces(self) -> Iterator[bytes]:
        yield encoded(self.document).removesuffix(b"]}")
        separator = b""
        while chunk := list(islice(self.items, _PIECE)):
            yield separator + b",".join(map(encoded, self.render(chunk)))
            separator = b","
        yield b"]}"


def rest_of(
    kind: Kind, namespaces: frozenset[str] | None, asked: Request, items: list[Object]
) -> Iterator[Object] | None:
    """These items and all behind them, where the request states no limit and there may be more than these; else None."""
    if asked.number("limit") or len(items) < _PIECE:
        return None
    takes, last = wanted(asked, kind), items[-1]["metadata"]
    later = _read(kind, asked)(namespaces, (last.get("namespace", ""), last["name"]), takes.exact)
    return chain(items, (each for each in later if takes.takes(each)))


def page(kind: Kind, namespaces: frozenset[str] | None, asked: Request) -> tuple[list[Object], dict[str, Any]]:
    """The objects, and the metadata of their list; how many are left is counted once, on the first page.

    Without a limit these are the first of them, and `rest_of` has all.
    """
    takes, limit = wanted(asked, kind), _limit(asked)
    token = asked.query.get("continue")
    head = journal.head()
    check_version(asked, max(head, journal.tip()))
    version, after, left = _resumed(token) if token else (head, None, None)
    if after and version < journal.floor():
        raise expired("The provided continue parameter is too old. Start a new list without the continue parameter.")
    fitting = (each for each in _read(kind, asked)(namespaces, after, takes.exact) if takes.takes(each))
    found = list(islice(fitting, limit + 1 if limit else _PIECE))
    metadata: dict[str, Any] = {"resourceVersion": str(version)}
    if limit and len(found) > limit:
        found = found[:limit]
        if takes.everything:
            left = (kind.count(namespaces) if left is None else left) - limit
            metadata |= {"remainingItemCount": left} if left > 0 else {}
        metadata["continue"] = _token(version, found[-1], left)
    return found, metadata


def _read(kind: Kind, asked: Request) -> Callable[..., Iterator[Object]]:
    return kind.lines if asked.wants_table and not asked.wants_objects else kind.objects


def _limit(asked: Request) -> int:
    """As asked, up to a bound; of a long table, which is being printed, later pages are longer."""
    limit = min(asked.number("limit"), _LONGEST_PAGE)
    long = asked.wants_table and "continue" in asked.query and limit == _TABLE_CHUNK
    return _TABLE_PAGE if long else limit


def check_version(asked: Request, head: int) -> None:
    """Refuses what is older, or newer, than what there is; every list and object is of now, which serves all others."""
    match, version = asked.query.get("resourceVersionMatch", ""), asked.number("resourceVersion")
    if match and (match not in _MATCHES or "resourceVersion" not in asked.query or "continue" in asked.query):
        message = f'Invalid value: "{match}": must be Exact or NotOlderThan, beside a resourceVersion and no continue'
        raise _match_fault("FieldValueInvalid", message)
    if match == "Exact" and not version:
        message = 'Forbidden: resourceVersionMatch "Exact" is forbidden for resourceVersion "0"'
        raise _match_fault("FieldValueForbidden", message)
    if version > head:
        raise too_large(version, head)
    if match == "Exact" and version != head:
        raise expired(f"The resourceVersion for the provided list is too old: {version} ({head})")


def _match_fault(reason: str, message: str) -> KubeError:
    cause = {"reason": reason, "message": message, "field": "resourceVersionMatch"}
    details = {"group": "meta.k8s.io", "kind": "ListOptions", "causes": [cause]}
    return KubeError(422, f'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: {message}', details=details)


def too_large(version: int, head: int) -> KubeError:
    """From another life of the database, or from a copy that was ahead: clients ask again, and then without it."""
    message = f"Too large resource version: {version}, current: {head}"
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    details = {"causes": [cause], "retryAfterSeconds": 1}
    return KubeError(504, f"Timeout: {message}", reason="Timeout", details=details)


def document(kind: Kind, items: list[Object], metadata: dict[str, Any]) -> Object:
    resource = kind.served.resource
    return {"kind": kind.served.list_kind, "apiVersion": resource.api_version, "metadata": metadata, "items": items}


def _token(version: int, last: Object, left: int | None) -> str:
    key = [version, last["metadata"].get("namespace", ""), last["metadata"]["name"], left]
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode()


def _resumed(token: str) -> tuple[int, Key, int | None]:
    try:
        match reader.read_json(base64.urlsafe_b64decode(token.encode())):
            case [int(version), str(namespace), str(name), None | int() as left] if 0 <= version <= _LATEST:
                return version, (namespace, name), left
    except ValueError as e:
        raise KubeError(400, "continue key is not valid") from e
    raise KubeError(400, "continue key is not valid")
