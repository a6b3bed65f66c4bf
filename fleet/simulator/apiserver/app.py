"""HTTP in, HTTP out: finds what a path means, reads the body whole, calls a verb, answers. A raw ASGI application."""

import asyncio
import base64
import hmac
import json
from collections.abc import Awaitable, Callable
from typing import Any, Protocol
from urllib.parse import parse_qsl

import yaml

from fleet.kube import discovery, selectors
from fleet.kube.status import KubeError
from fleet.simulator.apiserver import openapi
from fleet.simulator.apiserver.faults import Faults
from fleet.simulator.apiserver.operations import Operations
from fleet.simulator.apiserver.paths import Target, parse
from fleet.simulator.apiserver.watching import Watch, Watcher

Scope = dict[str, Any]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]

MAX_BODY = 3 * 1024 * 1024
_OPEN_PATHS = ("/healthz", "/livez", "/readyz", "/version")
_FOLLOW_S = 0.1


class LogSource(Protocol):
    """Whoever runs the pods knows what they printed."""

    def read(self, namespace: str, name: str, offset: int) -> tuple[bytes, bool] | None:
        """What was printed from ``offset`` on, and whether no more will come; None: no log of this pod."""


class Application:
    def __init__(
        self, operations: Operations, faults: Faults, *, token: str, version: str, logs: LogSource | None
    ) -> None:
        self._ops = operations
        self._faults = faults
        self._token = f"Bearer {token}".encode()
        self._version = version
        self._logs = logs
        self.stopping = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            body = await _body(receive)
            if self._faults.slow_s:
                await asyncio.sleep(self._faults.slow_s)
            self._authorise(scope)
            if (code := self._faults.error_code()) is not None:
                raise KubeError(code, "the server is having a bad moment (simulated)")
            await self._answer(scope, body, send)
        except KubeError as e:
            await self._json(scope, send, e.code, e.as_status())

    def _authorise(self, scope: Scope) -> None:
        given = dict(scope["headers"]).get(b"authorization", b"")
        if scope["path"] not in _OPEN_PATHS and not hmac.compare_digest(given, self._token):
            raise KubeError(401, "Unauthorized")

    async def _answer(self, scope: Scope, body: bytes, send: Send) -> None:
        path, method = scope["path"], scope["method"]
        query = dict(parse_qsl(scope["query_string"].decode(), keep_blank_values=True))
        if (document := self._document(path)) is not None:
            if isinstance(document, str):
                await self._send(scope, send, 200, document.encode(), b"text/plain")
            else:
                await self._json(scope, send, 200, document)
            return
        if path.endswith("/selfsubjectaccessreviews") and method == "POST":
            await self._json(scope, send, 201, {**_parsed(scope, body), "status": {"allowed": True}})
            return
        target = parse(path, self._ops.catalog)
        if target.subresource == "log" and method == "GET":
            await self._log(scope, send, target, query)
        elif method == "GET" and not target.name and query.get("watch") in ("1", "true"):
            await self._watch(scope, send, target, query)
        else:
            code, answer = self._verb(method, target, query, lambda: _parsed(scope, body))
            await self._json(scope, send, code, answer)

    def _document(self, path: str) -> dict[str, Any] | str | None:
        """Everything that is not an object: health, version, discovery, OpenAPI."""
        if path in ("/healthz", "/livez", "/readyz"):
            return "ok"
        if path == "/version":
            major, minor = self._version.removeprefix("v").split(".")[:2]
            return {"major": major, "minor": minor, "gitVersion": self._version, "platform": "linux/amd64"}
        if path == "/api":
            return discovery.core_versions()
        if path == "/apis":
            return discovery.groups(self._ops.catalog)
        if path.startswith("/openapi/v3"):
            return openapi.document(path, self._ops.catalog)
        parts = path.strip("/").split("/")
        if parts[0] == "apis" and len(parts) == 2 and (versions := self._ops.catalog.versions(parts[1])):
            return discovery.group(parts[1], versions)
        if path == "/api/v1" or (parts[0] == "apis" and len(parts) == 3):
            group, version = ("", "v1") if parts[0] == "api" else (parts[1], parts[2])
            served = self._ops.catalog.of_version(group, version)
            if served:
                return discovery.resource_list(f"{group}/{version}" if group else version, served)
        return None

    def _verb(
        self, method: str, target: Target, query: dict[str, str], body: Callable[[], Any]
    ) -> tuple[int, dict[str, Any]]:
        ops, served, namespace, name = self._ops, target.served, target.namespace, target.name
        if target.subresource == "binding" and method == "POST":
            return 201, ops.bind(served, namespace, name, body())
        if not name:
            return self._collection_verb(method, target, query, body)
        if method == "GET":
            return 200, ops.get(served, namespace, name)
        if method == "PUT":
            return 200, ops.update(served, namespace, name, body(), target.subresource)
        if method == "PATCH":
            return 200, ops.patch(served, namespace, name, body(), target.subresource)
        if method == "DELETE" and not target.subresource:
            return 200, ops.delete(served, namespace, name, _options(query, body()))
        raise KubeError(405, "the server does not allow this method on the requested resource")

    def _collection_verb(
        self, method: str, target: Target, query: dict[str, str], body: Callable[[], Any]
    ) -> tuple[int, dict[str, Any]]:
        labels, fields = _selectors(query)
        if method == "GET":
            return 200, self._list(target, query, self._ops.list(target.served, target.namespace, labels, fields))
        if method == "POST":
            made = self._ops.create(target.served, target.namespace, body())
            if made["metadata"].get("ownerReferences"):
                asyncio.get_running_loop().call_later(0.05, self._ops.collect, target.served, made)
            return 201, made
        if method == "DELETE":
            options = _options(query, body())
            gone = self._ops.delete_collection(target.served, target.namespace, labels, fields, options)
            return 200, self._list(target, {}, gone)
        raise KubeError(405, "the server does not allow this method on the requested resource")

    def _list(self, target: Target, query: dict[str, str], found: list[dict[str, Any]]) -> dict[str, Any]:
        version = self._ops.store.version
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        limit = int(query.get("limit") or 0)
        start, metadata["resourceVersion"] = _continue(query.get("continue", ""), version)
        page = found[start : start + limit] if limit else found[start:]
        if limit and start + limit < len(found):
            token = json.dumps([start + limit, metadata["resourceVersion"]]).encode()
            metadata["continue"] = base64.urlsafe_b64encode(token).decode()
            metadata["remainingItemCount"] = len(found) - start - limit
        return {
            "kind": target.served.list_kind,
            "apiVersion": target.served.resource.api_version,
            "metadata": metadata,
            "items": page,
        }

    async def _watch(self, scope: Scope, send: Send, target: Target, query: dict[str, str]) -> None:
        labels, fields = _selectors(query)
        since = query.get("resourceVersion") or "0"
        if not since.isdigit():
            raise KubeError(400, f"Invalid value: {since!r}: resourceVersion must be a number")
        resource = target.served.resource
        watch = Watch(
            (resource.group, resource.plural),
            resource.api_version,
            target.served.list_kind,
            target.namespace,
            labels,
            fields,
            int(since) or None,
            query.get("allowWatchBookmarks") in ("1", "true"),
            float(query.get("timeoutSeconds") or 1800),
        )
        await _start(send, 200, b"application/json")
        async for lines in Watcher(watch, self._ops.store, self._faults).lines():
            if self.stopping or self._faults.away or scope["transport"].is_closing():
                break
            if lines:
                await send({"type": "http.response.body", "body": lines, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _log(self, scope: Scope, send: Send, target: Target, query: dict[str, str]) -> None:
        pod = self._ops.get(target.served, target.namespace, target.name)
        first = self._logs.read(target.namespace, target.name, 0) if self._logs else None
        if first is None:
            container = pod["spec"]["containers"][0]["name"]
            raise KubeError(
                400, f'container "{container}" in pod "{target.name}" is waiting to start: ContainerCreating'
            )
        text, ended = first
        shown = _tail(text, query.get("tailLines"))
        await _start(send, 200, b"text/plain")
        await send({"type": "http.response.body", "body": shown, "more_body": True})
        offset, follow = len(text), query.get("follow") in ("1", "true")
        while follow and not ended and not (self.stopping or self._faults.away or scope["transport"].is_closing()):
            await asyncio.sleep(_FOLLOW_S)
            more = self._logs.read(target.namespace, target.name, offset) if self._logs else None
            if more is None:
                break
            text, ended = more
            offset += len(text)
            if text:
                await send({"type": "http.response.body", "body": text, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _json(self, scope: Scope, send: Send, code: int, answer: dict[str, Any]) -> None:
        body = json.dumps(answer, separators=(",", ":")).encode()
        await self._send(scope, send, code, body, b"application/json")

    async def _send(self, scope: Scope, send: Send, code: int, body: bytes, content_type: bytes) -> None:
        if self._faults.away or self._faults.breaks_answer():
            scope["transport"].abort()
            return
        headers = [(b"content-type", content_type), (b"content-length", str(len(body)).encode())]
        if code == 429:
            headers.append((b"retry-after", b"1"))
        await send({"type": "http.response.start", "status": code, "headers": headers})
        await send({"type": "http.response.body", "body": body})


async def _start(send: Send, code: int, content_type: bytes) -> None:
    await send({"type": "http.response.start", "status": code, "headers": [(b"content-type", content_type)]})


async def _body(receive: Receive) -> bytes:
    """The whole body, always: what is left unread would be taken for the next request."""
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            break
        size += len(message.get("body", b""))
        if size <= MAX_BODY:
            parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    if size > MAX_BODY:
        raise KubeError(413, f"Request entity too large: limit is {MAX_BODY}")
    return b"".join(parts)


def _parsed(scope: Scope, body: bytes) -> Any:
    content_type = dict(scope["headers"]).get(b"content-type", b"application/json").decode().split(";")[0]
    if scope["method"] == "PATCH" and content_type not in ("application/merge-patch+json", "application/json"):
        raise KubeError(415, f"the body of the request was in an unknown format ({content_type}): use a merge patch")
    if not body:
        return {}
    try:
        return yaml.safe_load(body) if "yaml" in content_type else json.loads(body)
    except (ValueError, yaml.YAMLError, RecursionError) as e:
        raise KubeError(400, f"the object provided is unrecognized: {e}") from e


def _options(query: dict[str, str], body: Any) -> dict[str, Any]:
    options = dict(body) if isinstance(body, dict) else {}
    if "propagationPolicy" in query:
        options["propagationPolicy"] = query["propagationPolicy"]
    if query.get("gracePeriodSeconds", "").isdigit():
        options["gracePeriodSeconds"] = int(query["gracePeriodSeconds"])
    return options


def _selectors(query: dict[str, str]) -> tuple[selectors.Selector, selectors.Selector]:
    try:
        return selectors.parse_labels(query.get("labelSelector", "")), selectors.parse_fields(
            query.get("fieldSelector", "")
        )
    except selectors.SelectorError as e:
        raise KubeError(400, str(e)) from e


def _continue(token: str, version: int) -> tuple[int, str]:
    if not token:
        return 0, str(version)
    try:
        start, seen = json.loads(base64.urlsafe_b64decode(token.encode()))
        return int(start), str(seen)
    except (ValueError, TypeError) as e:
        raise KubeError(400, f"continue key is not valid: {e}") from e


def _tail(text: bytes, lines: str | None) -> bytes:
    if lines is None or not lines.isdigit():
        return text
    return b"".join(text.splitlines(keepends=True)[-int(lines) :]) if int(lines) else b""
