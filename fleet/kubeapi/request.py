"""One HTTP request to the Kubernetes-style door, read whole, and its answer. Knows HTTP; knows no kind and no verb."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from fleet.kube import bodies, discovery, options, strictness
from fleet.kube.bodies import Body
from fleet.kube.options import WriteOptions
from fleet.kube.status import KubeError

Scope = dict[str, Any]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Object = dict[str, Any]

MAX_BODY = 3 * 1024 * 1024


@dataclass(slots=True)
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[bytes, bytes]
    raw: bytes = b""
    too_large: bool = False
    address: str = ""
    """Where it came from."""
    warnings: list[str] = field(default_factory=list)
    """Told to the person beside the answer, whatever the answer is."""
    meant: Object = field(default_factory=dict)
    """What is to be stored, once that is known: a refusal shows the values it is about."""

    @property
    def content_type(self) -> str:
        return self.headers.get(b"content-type", b"application/json").decode("latin-1").split(";")[0].strip()

    @property
    def bearer(self) -> str:
        scheme, _, token = self.headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""

    @property
    def wants_table(self) -> bool:
        """Whether a Table is named before plain JSON."""
        for offer in self.headers.get(b"accept", b"").decode("latin-1").split(","):
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
    def dry_run(self) -> bool:
        return bool(self.query.get("dryRun"))

    def truth(self, parameter: str) -> bool:
        return self.query.get(parameter) in ("1", "true", "True")

    def number(self, parameter: str) -> int:
        """0 when it is not given."""
        text = self.query.get(parameter) or "0"
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise KubeError(400, f"Invalid value: {text[:80]!r}: {parameter} must be a number")
        return int(text)

    @property
    def options(self) -> WriteOptions:
        agent = self.headers.get(b"user-agent", b"").decode("latin-1")
        return options.read(self.method, self.query, self.content_type, agent)

    def read(self) -> Body:
        return bodies.read(self.raw, self.content_type)

    def body(self) -> Any:
        return self.read().value

    def document(self) -> Object:
        body = self.body()
        if not isinstance(body, dict):
            raise KubeError(400, "the object provided is unrecognized: it is not an object")
        return body


async def read(scope: Scope, receive: Receive) -> Request | None:
    """The whole body, always: what is left unread would be taken for the next request. None when the caller left before its
    end: half a document can be read as another one, and a delete without its preconditions deletes more.
    """
    query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
    asked = Request(scope["method"], scope["path"], query, dict(scope["headers"]))
    asked.address = (scope.get("client") or ("",))[0]
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        size += len(message.get("body", b""))
        if size <= MAX_BODY:
            parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    asked.raw = b"".join(parts)
    asked.too_large = size > MAX_BODY
    return asked


async def gone(receive: Receive) -> None:
    """Returns when the reader has left."""
    while (await receive())["type"] != "http.disconnect":
        continue


def encoded(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


async def answer(send: Send, code: int, document: Object | str, warnings: list[str]) -> None:
    kind = b"text/plain; charset=utf-8" if isinstance(document, str) else b"application/json"
    if not isinstance(document, str) and document.get("kind") == "APIGroupDiscoveryList":
        kind = discovery.AGGREGATED.encode()
    body = document.encode() if isinstance(document, str) else encoded(document)
    headers = [
        (b"content-type", kind),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-cache, private"),
        *strictness.headers(warnings),
        *_retry_after(document),
    ]
    await send({"type": "http.response.start", "status": code, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _retry_after(document: Object | str) -> list[tuple[bytes, bytes]]:
    """Clients try a refusal again only where this header allows it."""
    if isinstance(document, str) or document.get("kind") != "Status":
        return []
    after_s = document.get("details", {}).get("retryAfterSeconds")
    return [(b"retry-after", str(after_s).encode())] if after_s else []
