"""One HTTP request to an API server, read whole, and its answer. Knows HTTP and content types, no kind and no verb."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from fleet.kube import discovery
from fleet.kube.requests import bodies, options
from fleet.kube.requests.bodies import Body
from fleet.kube.requests.options import WriteOptions
from fleet.kube.requests.status import KubeError
from fleet.kube.writes import strictness

Scope = dict[str, Any]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Object = dict[str, Any]

MAX_BODY = 3 * 1024 * 1024
SLICE = 256 * 1024
"""Bytes of an answer that are encrypted and sent at once: between two slices the event loop serves others."""
_FEW = 20
"""Items of a list that are encoded at once; no other thread computes while a document is being encoded."""


@dataclass(slots=True)
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[bytes, bytes]
    raw: bytes = b""
    too_large: bool = False
    address: str = ""
    """The address of the caller."""
    any_text: bool = False
    """Whether a body may hold zero bytes and half characters, as those of a real API server may."""
    warnings: list[str] = field(default_factory=list)
    """Sent to the caller beside the answer, whatever the answer is."""
    intended: Object = field(default_factory=dict)
    """What is to be stored, once that is known: an error shows the values it is about."""

    def header(self, name: bytes, default: str = "") -> str:
        return self.headers[name].decode("latin-1") if name in self.headers else default

    @property
    def content_type(self) -> str:
        return self.header(b"content-type", "application/json").split(";")[0].strip()

    @property
    def accept(self) -> str:
        return self.header(b"accept")

    @property
    def bearer(self) -> str:
        """The token; the scheme's case does not matter, as clients write both."""
        scheme, _, token = self.header(b"authorization").partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""

    @property
    def wants_table(self) -> bool:
        """Whether a Table is named before plain JSON."""
        for offer in self.accept.split(","):
            kind, *parameters = (part.strip() for part in offer.split(";"))
            if kind in ("application/json", "*/*"):
                if not any(part.startswith("as=") for part in parameters):
                    return False
                if "as=Table" in parameters:
                    return True
        return False

    @property
    def wants_objects(self) -> bool:
        """Whether each row of a Table is to carry its whole object."""
        return self.query.get("includeObject") == "Object"

    @property
    def is_watch(self) -> bool:
        return self.method == "GET" and self.truth("watch")

    def truth(self, parameter: str) -> bool:
        return self.query.get(parameter) in ("1", "true", "True")

    def number(self, parameter: str) -> int:
        """0 when the parameter is missing."""
        text = self.query.get(parameter) or "0"
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise KubeError(400, f"Invalid value: {text[:80]!r}: {parameter} must be a number")
        return int(text)

    @property
    def options(self) -> WriteOptions:
        return options.read(self.method, self.query, self.content_type, self.header(b"user-agent"))

    def read(self) -> Body:
        return bodies.read(self.raw, self.content_type, any_text=self.any_text)

    def body(self) -> Any:
        return self.read().value

    def document(self) -> Object:
        body = self.body()
        if not isinstance(body, dict):
            raise KubeError(400, "the object provided is unrecognized: it is not an object")
        return body


async def read(scope: Scope, receive: Receive, *, any_text: bool = False) -> Request | None:
    """Reads the whole body, always: what is left unread would be taken for the next request.

    Returns None when the caller left before the body's end: half a document can be read as another one, and a delete
    without its preconditions deletes more.
    """
    query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
    address = (scope.get("client") or ("",))[0]
    request = Request(scope["method"], scope["path"], query, dict(scope["headers"]), address=address, any_text=any_text)
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        size += len(message.get("body", b""))
        if size <= MAX_BODY:
            parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    request.raw = b"".join(parts)
    request.too_large = size > MAX_BODY
    return request


async def disconnected(receive: Receive) -> None:
    """Returns when the caller has left."""
    while (await receive())["type"] != "http.disconnect":
        continue


def encoded(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def encoded_list(document: Object) -> bytes:
    """The same as `encoded`; but the items of a long list, which are its last field, are encoded one by one."""
    last = next(reversed(document), "")
    items = document.get(last)
    if not isinstance(items, list) or len(items) <= _FEW:
        return encoded(document)
    return encoded({**document, last: []}).removesuffix(b"]}") + b",".join(map(encoded, items)) + b"]}"


@dataclass(frozen=True, slots=True)
class Rendered:
    """A whole answer as it is sent."""

    content: bytes
    headers: list[tuple[bytes, bytes]]


def rendered(document: Object | str) -> Rendered:
    """An object as JSON, text as it is. Call it in a thread where the answer may be long."""
    kind = b"text/plain; charset=utf-8" if isinstance(document, str) else b"application/json"
    if not isinstance(document, str) and document.get("kind") == "APIGroupDiscoveryList":
        kind = discovery.AGGREGATED.encode()
    content = document.encode() if isinstance(document, str) else encoded_list(document)
    return Rendered(content, [*_headers(kind), *_retry_after(document)])


async def answer(send: Send, code: int, document: Object | str | Rendered, warnings: list[str]) -> None:
    """Sends a whole answer."""
    whole = document if isinstance(document, Rendered) else rendered(document)
    length = (b"content-length", str(len(whole.content)).encode())
    headers = [*whole.headers, length, *strictness.headers(warnings)]
    await send({"type": "http.response.start", "status": code, "headers": headers})
    if len(whole.content) <= SLICE:
        await send({"type": "http.response.body", "body": whole.content})
        return
    await _send_slices(send, whole.content)
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def stream(
    send: Send,
    chunks: AsyncIterator[bytes],
    kind: bytes = b"application/json",
    *,
    pause_s: float | None = None,
) -> None:
    """Sends an answer chunk by chunk, each when the one before it was taken, for which the reader has ``pause_s``."""
    await send({"type": "http.response.start", "status": 200, "headers": _headers(kind)})
    async for chunk in chunks:
        if chunk:
            await asyncio.wait_for(_send_slices(send, chunk), pause_s)
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _send_slices(send: Send, content: bytes) -> None:
    for start in range(0, len(content), SLICE):
        if start:
            await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": content[start : start + SLICE], "more_body": True})


def _headers(kind: bytes) -> list[tuple[bytes, bytes]]:
    return [(b"content-type", kind), (b"cache-control", b"no-cache, private")]


def _retry_after(document: Object | str) -> list[tuple[bytes, bytes]]:
    """Clients repeat a refused request only where this header allows it."""
    if isinstance(document, str) or document.get("kind") != "Status":
        return []
    after_s = document.get("details", {}).get("retryAfterSeconds")
    return [(b"retry-after", str(after_s).encode())] if after_s else []
