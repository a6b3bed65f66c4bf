"""One HTTP request of the simulated API server, read whole, and the answers to it. Knows HTTP and no Kubernetes verb."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from fleet.kube import bodies, options, strictness
from fleet.kube.bodies import Body
from fleet.kube.status import KubeError
from simulator.apiserver.faults import Faults
from simulator.apiserver.writes import Write

Scope = dict[str, Any]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]

MAX_BODY = 3 * 1024 * 1024


@dataclass(slots=True)
class Request:
    scope: Scope
    receive: Receive
    send: Send
    query: dict[str, str]
    headers: dict[bytes, bytes]
    faults: Faults
    """What goes wrong with this request."""
    raw: bytes = b""
    warnings: list[str] = field(default_factory=list)

    @property
    def method(self) -> str:
        return str(self.scope["method"])

    @property
    def path(self) -> str:
        return str(self.scope["path"])

    @property
    def content_type(self) -> str:
        return self.headers.get(b"content-type", b"application/json").decode("latin-1").split(";")[0].strip()

    @property
    def gone(self) -> bool:
        """Whether the caller is no longer there, or the server is away for it."""
        return self.faults.away or self.scope["transport"].is_closing()

    async def read(self) -> None:
        """The whole body, always: what is left unread would be taken for the next request."""
        parts, size, more = [], 0, True
        while more:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                break
            size += len(message.get("body", b""))
            if size <= MAX_BODY:
                parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        if size > MAX_BODY:
            raise KubeError(413, f"Request entity too large: limit is {MAX_BODY}")
        self.raw = b"".join(parts)

    def read_body(self) -> Body:
        return bodies.read(self.raw, self.content_type, any_text=True)

    def body(self) -> Any:
        return self.read_body().value

    def write(self) -> Write:
        """How it is to be written; its warnings go into the answer."""
        agent = self.headers.get(b"user-agent", b"").decode("latin-1")
        asked = options.read(self.method, self.query, self.content_type, agent)
        return Write(asked, self.read_body().duplicates, self.warnings)

    @property
    def accept(self) -> str:
        return self.headers.get(b"accept", b"").decode("latin-1")

    @property
    def wants_table(self) -> bool:
        """kubectl names a table first among what it accepts; others never do."""
        return "as=Table" in self.accept.partition(",")[0]

    @property
    def wants_objects(self) -> bool:
        """Beside the rows of a table."""
        return self.query.get("includeObject") == "Object"

    def truth(self, parameter: str) -> bool:
        return self.query.get(parameter) in ("1", "true", "True")

    async def answer(self, code: int, document: dict[str, Any]) -> None:
        await self.whole(code, encoded(document), b"application/json")

    async def whole(self, code: int, body: bytes, content_type: bytes) -> None:
        if self.faults.away or self.faults.breaks_answer():
            await self.hang_up()
            return
        headers = [(b"content-type", content_type), (b"content-length", str(len(body)).encode())]
        headers += strictness.headers(self.warnings)
        if code == 429:
            headers.append((b"retry-after", b"1"))
        await self.send({"type": "http.response.start", "status": code, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})

    async def begin(self, content_type: bytes) -> None:
        """A stream of `more`, ended by `end` or `hang_up`."""
        headers = [(b"content-type", content_type)]
        await self.send({"type": "http.response.start", "status": 200, "headers": headers})

    async def more(self, body: bytes) -> None:
        if body:
            await self.send({"type": "http.response.body", "body": body, "more_body": True})

    async def end(self) -> None:
        if self.gone:
            await self.hang_up()
        else:
            await self.send({"type": "http.response.body", "body": b"", "more_body": False})

    async def hang_up(self) -> None:
        """Breaks the connection; returns when it is broken, so that no client expects an answer any more."""
        self.scope["transport"].abort()
        await self.disconnected()

    async def disconnected(self) -> None:
        """Returns when the caller is gone; call it when the body is read."""
        while (await self.receive())["type"] != "http.disconnect":
            continue


def encoded(document: dict[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def request(scope: Scope, receive: Receive, send: Send, faults: Faults) -> Request:
    query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
    return Request(scope, receive, send, query, dict(scope["headers"]), faults)
