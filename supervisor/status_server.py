"""Kubeflow Trainer's status endpoint (KEP-2779) over HTTPS: ``POST /apis/GROUP/VERSION/namespaces/NS/PLURAL/NAME/status``.

Everything in the cluster's network reaches it, so that what it reads is bounded before it is looked at: connections and
requests of an address (of connections before there is TLS), bytes of a head and of a body, and the time for each.
"""

import asyncio
import json
import re
import socket
import ssl
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path

from structlog import get_logger

from jobs.kinds import registry
from jobs.runtime.progress import MOST_BYTES
from supervisor.core.limits import Buckets
from supervisor.reports import Answer, Key, Reports

log = get_logger(__name__)

PORT = 8443
MOST_HEAD = 16 * 1024
MOST_CONNECTIONS, MOST_OF_ADDRESS = 512, 64
REQUESTS_PER_S, REQUESTS_BURST = 20.0, 60.0
"""Of one address; connections as well."""
_ADDRESSES = 16_384
_REQUEST_S, _IDLE_S, _HANDSHAKE_S = 10.0, 60.0, 5.0
_POLL_S = 1.0
_LAST_S = 2.0
"""For the writes of what was answered, when the server ends."""
_LINE = re.compile(r"([A-Z]{1,16}) (/[!-~]{0,1024}) HTTP/1\.[01]")
_NAMESPACE, _NAME = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?"
"""As Kubernetes has them: ``.`` and ``..`` would be another path at the member's API."""
_PATH = re.compile(rf"/apis/([a-z0-9.-]+)/([a-z0-9]+)/namespaces/({_NAMESPACE})/([a-z]+)/({_NAME})/status")


@dataclass(frozen=True, slots=True)
class Head:
    method: str
    path: str
    headers: dict[str, str]
    """By name in lower case."""

    @property
    def keeps_open(self) -> bool:
        return self.headers.get("connection", "").lower() != "close"

    @property
    def token(self) -> str:
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""

    @property
    def length(self) -> int | None:
        """Bytes of the body; None: it is not said, or not in a way that counts here."""
        text = self.headers.get("content-length", "")
        is_number = text.isascii() and text.isdigit() and len(text) < 12
        return int(text) if is_number and "transfer-encoding" not in self.headers else None


class StatusServer:
    def __init__(self, reports: Reports, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._reports, self._monotonic = reports, monotonic
        self._requests = Buckets(REQUESTS_PER_S, REQUESTS_BURST, _ADDRESSES)
        self._connections = Buckets(REQUESTS_PER_S, REQUESTS_BURST, _ADDRESSES)
        self._open: Counter[str] = Counter()
        self._serving: set[asyncio.Task[object]] = set()

    async def run(self, folder: Path, port: int, ready: Callable[[int], None] = lambda port: None) -> None:
        """Serves with ``tls.crt`` and ``tls.key`` of the folder once they are there, and with new ones when they change."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        loaded = ""
        while not (loaded := _load(context, folder, loaded)):
            await asyncio.sleep(_POLL_S)
        server = await asyncio.start_server(partial(self._serve, context), None, port, limit=MOST_HEAD, backlog=256)
        try:
            ready(next(each.getsockname()[1] for each in server.sockets if each.family == socket.AF_INET))
            log.info("reports are taken", port=port)
            while True:
                await asyncio.sleep(_POLL_S)
                loaded = _load(context, folder, loaded)
                await self._reports.flush()
        finally:
            server.close()
            await self._end()

    async def _end(self) -> None:
        """No connection outlives the server: what is reported on it would not be written."""
        while self._serving:
            for task in self._serving:
                task.cancel()
            await asyncio.gather(*self._serving, return_exceptions=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_S):
                await self._reports.flush(at_once=True)
        await self._reports.close()

    async def _serve(self, context: ssl.SSLContext, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = str((writer.get_extra_info("peername") or ("",))[0])
        self._open[address] += 1
        if (task := asyncio.current_task()) is not None:
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)
        try:
            if self._may_connect(address):
                with suppress(OSError, TimeoutError, ValueError, asyncio.IncompleteReadError):
                    await writer.start_tls(context, ssl_handshake_timeout=_HANDSHAKE_S)
                    while await self._request(address, reader, writer):
                        pass
        except asyncio.CancelledError:
            # To close it, TLS would wait for the other side. The task ends here: asyncio logs handlers that were cancelled.
            writer.transport.abort()
        finally:
            self._open[address] -= 1
            if not self._open[address]:
                del self._open[address]
            writer.close()

    def _may_connect(self, address: str) -> bool:
        few = self._open.total() <= MOST_CONNECTIONS and self._open[address] <= MOST_OF_ADDRESS
        return few and self._connections.take(address, self._monotonic())

    async def _request(self, address: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answers one request; returns whether another one may follow on the connection."""
        async with asyncio.timeout(_IDLE_S):
            first = await reader.readline()
        if not first:
            return False
        async with asyncio.timeout(_REQUEST_S):
            head = _head(first + await _rest(reader, first))
            if head is None:
                return await _write(writer, Answer(HTTPStatus.BAD_REQUEST, "this is no HTTP/1.1 request"), more=False)
            length = head.length if head.method == "POST" else 0
            if length is None:
                answer = Answer(HTTPStatus.LENGTH_REQUIRED, "Content-Length: is required")
                return await _write(writer, answer, more=False)
            if length > MOST_BYTES:
                message = f"the body has {length} bytes, and may have {MOST_BYTES}: send fewer metrics"
                return await _write(writer, Answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message), more=False)
            body = await reader.readexactly(length)
        answer = await self._answer(address, head, body)
        async with asyncio.timeout(_REQUEST_S):
            return await _write(writer, answer, more=head.keeps_open)

    async def _answer(self, address: str, head: Head, body: bytes) -> Answer:
        if not self._requests.take(address, self._monotonic()):
            return Answer(HTTPStatus.TOO_MANY_REQUESTS, "too many requests from this address: try again later")
        key = _key(head.path)
        if key is None:
            return Answer(HTTPStatus.NOT_FOUND, "there is no such path")
        if head.method != "POST":
            return Answer(HTTPStatus.METHOD_NOT_ALLOWED, "only POST is served")
        return await self._reports.take(key, head.token, body, address)


async def _rest(reader: asyncio.StreamReader, first: bytes) -> bytes:
    lines, size = [], len(first)
    while (line := await reader.readline()) not in (b"\r\n", b"\n", b""):
        lines.append(line)
        size += len(line)
        if size > MOST_HEAD:
            raise ValueError("the head is too long")
    return b"".join(lines)


def _head(text: bytes) -> Head | None:
    first, *lines = text.decode("latin-1").split("\n")
    match = _LINE.fullmatch(first.rstrip("\r"))
    if match is None:
        return None
    fields = [line.rstrip("\r").partition(":") for line in lines if line.strip()]
    names = [name.lower() for name, _, _ in fields]
    if any(not colon for _, colon, _ in fields) or names.count("content-length") > 1:
        return None
    return Head(match[1], match[2], {name: value.strip() for name, (_, _, value) in zip(names, fields, strict=True)})


def _key(path: str) -> Key | None:
    match = _PATH.fullmatch(path)
    if match is None:
        return None
    group, version, namespace, plural, name = match.groups()
    for kind in registry.everything():
        if (kind.resource.group, kind.resource.version, kind.resource.plural) == (group, version, plural):
            return kind.resource, namespace, name
    return None


async def _write(writer: asyncio.StreamWriter, answer: Answer, *, more: bool) -> bool:
    code = answer.status.value
    if answer.status is HTTPStatus.OK:
        document: dict[str, object] = {"stop": answer.stop}
    else:
        reason = answer.status.phrase.replace(" ", "")
        document = {"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason}
        document["message"] = answer.message
    body = json.dumps(document).encode()
    head = (
        f"HTTP/1.1 {code} {answer.status.phrase}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    )
    head += "" if more else "Connection: close\r\n"
    writer.write(head.encode() + b"\r\n" + body)
    await writer.drain()
    return more


def _load(context: ssl.SSLContext, folder: Path, loaded: str) -> str:
    """What identifies the files that the context has now; those that cannot be used are left."""
    certificate, key = folder / "tls.crt", folder / "tls.key"
    try:
        version = f"{certificate.stat().st_mtime_ns}/{key.stat().st_mtime_ns}"
        if version != loaded:
            context.load_cert_chain(certificate, key)
        return version
    except (OSError, ssl.SSLError) as e:
        if loaded:
            log.warning("certificate cannot be used", folder=str(folder), error=str(e))
        return loaded
