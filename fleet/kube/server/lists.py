"""Lists and their pages, as objects or as a table.

A `continue` token is the version of the first page and the key after which the next page begins. Where the storage keeps
former versions every page is of that version; elsewhere later pages may show later changes, and a watch from the list's
version repeats each of them, so that a client misses none.
"""

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import chain, islice
from typing import Any

from fleet.kube import tables
from fleet.kube.requests import reader
from fleet.kube.requests.status import KubeError, expired
from fleet.kube.server.kinds import History, Key, Kind, Namespaces, Object
from fleet.kube.server.request import Request, encoded
from fleet.kube.server.selection import selection

_MATCHES = ("Exact", "NotOlderThan")
_LATEST = 10**18
_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter."
)
Render = Callable[[list[Object], Object], Object]
"""A list as it is sent: of these objects, with this metadata."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A long list without a limit, which is never in memory as a whole: its pieces are rendered as its reader takes them."""

    empty: Object
    """The list, with an empty list of items or of rows for its last field."""
    items: Iterator[Object]
    render: Callable[[list[Object]], list[Object]]
    piece: int

    def pieces(self) -> Iterator[bytes]:
        yield encoded(self.empty).removesuffix(b"]}")
        separator = b""
        while chunk := list(islice(self.items, self.piece)):
            yield separator + b",".join(map(encoded, self.render(chunk)))
            separator = b","
        yield b"]}"


def answer(kind: Kind, history: History, namespaces: Namespaces, request: Request, render: Render) -> Object | Stream:
    """The list a request asks for."""
    items, metadata = page(kind, history, namespaces, request)
    rest = rest_of(kind, history, namespaces, request, items)
    if rest is None:
        return render(items, metadata)
    last = "rows" if request.wants_table else "items"
    return Stream(render([], metadata), rest, lambda chunk: list(render(chunk, {})[last]), history.piece)


def rest_of(
    kind: Kind, history: History, namespaces: Namespaces, request: Request, items: list[Object]
) -> Iterator[Object] | None:
    """These items and all behind them, where the request states no limit and there may be more than these; else None."""
    if request.number("limit") or not history.piece or len(items) < history.piece:
        return None
    selected, last = selection(request, kind), items[-1]["metadata"]
    later = _read(kind, request, history.version())(
        namespaces, (last.get("namespace", ""), last["name"]), selected.exact
    )
    return chain(items, (shown for shown in later if selected.takes(shown)))


def page(kind: Kind, history: History, namespaces: Namespaces, request: Request) -> tuple[list[Object], dict[str, Any]]:
    """The objects, and the metadata of their list; how many remain is counted once, on the first page.

    Without a limit these are the first piece, and `rest_of` has all.
    """
    selected, limit, token = selection(request, kind), history.limit(request), request.query.get("continue")
    now = history.version()
    check_version(request, max(now, history.newest()))
    version, after, remaining = _resumed(token) if token else (now, None, None)
    if after and version < history.floor():
        raise expired(_TOO_OLD)
    objects = _read(kind, request, version)(namespaces, after, selected.exact)
    longest = limit + 1 if limit else history.piece or None
    items = list(islice((shown for shown in objects if selected.takes(shown)), longest))
    metadata: dict[str, Any] = {"resourceVersion": str(version)}
    if limit and len(items) > limit:
        items = items[:limit]
        if selected.everything:
            remaining = (kind.count(namespaces) if remaining is None else remaining) - limit
            metadata |= {"remainingItemCount": remaining} if remaining > 0 else {}
        metadata["continue"] = _token(version, items[-1], remaining)
    return items, metadata


def _read(kind: Kind, request: Request, version: int) -> Callable[..., Iterator[Object]]:
    if request.wants_table and not request.wants_objects:
        return partial(kind.lines_at, version)
    return partial(kind.objects_at, version)


def check_version(request: Request, newest: int) -> None:
    """Refuses a version that is older, or newer, than what there is; lists are of now, which serves all others."""
    match, version = request.query.get("resourceVersionMatch", ""), request.number("resourceVersion")
    if match and (match not in _MATCHES or "resourceVersion" not in request.query or "continue" in request.query):
        message = f'Invalid value: "{match}": must be Exact or NotOlderThan, beside a resourceVersion and no continue'
        raise _match_fault("FieldValueInvalid", message)
    if match == "Exact" and not version:
        message = 'Forbidden: resourceVersionMatch "Exact" is forbidden for resourceVersion "0"'
        raise _match_fault("FieldValueForbidden", message)
    if version > newest:
        raise too_large(version, newest)
    if match == "Exact" and version != newest:
        raise expired(f"The resourceVersion for the provided list is too old: {version} ({newest})")


def _match_fault(reason: str, message: str) -> KubeError:
    cause = {"reason": reason, "message": message, "field": "resourceVersionMatch"}
    details = {"group": "meta.k8s.io", "kind": "ListOptions", "causes": [cause]}
    return KubeError(422, f'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: {message}', details=details)


def too_large(version: int, newest: int) -> KubeError:
    """For a version of another life of the storage: clients ask again, and then without it."""
    message = f"Too large resource version: {version}, current: {newest}"
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    details = {"causes": [cause], "retryAfterSeconds": 1}
    return KubeError(504, f"Timeout: {message}", reason="Timeout", details=details)


def document(kind: Kind, items: list[Object], metadata: dict[str, Any]) -> Object:
    resource = kind.served.resource
    return {"kind": kind.served.list_kind, "apiVersion": resource.api_version, "metadata": metadata, "items": items}


def table(kind: Kind, items: list[Object], metadata: Object, request: Request, now: datetime) -> Object:
    include = request.query.get("includeObject", "")
    return tables.table(kind.table_columns(), items, metadata, now, include=include)


def _token(version: int, last: Object, remaining: int | None) -> str:
    key = [version, last["metadata"].get("namespace", ""), last["metadata"]["name"], remaining]
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode()


def _resumed(token: str) -> tuple[int, Key, int | None]:
    try:
        match reader.read_json(base64.urlsafe_b64decode(token.encode())):
            case [int(version), str(namespace), str(name), None | int() as remaining] if 0 <= version <= _LATEST:
                return version, (namespace, name), remaining
    except ValueError as e:
        raise KubeError(400, "continue key is not valid") from e
    raise KubeError(400, "continue key is not valid")
