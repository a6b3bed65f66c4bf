"""A request to a member that asks for another protocol (WebSocket, SPDY), on a connection of its own.

Once the member has switched, the connection is the caller's: bytes, nothing is looked at. Whatever else the member answers
is an answer like any other. Addresses are checked before anything is sent to them, as `fleet.member.client` does.
"""

import asyncio
import ssl
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

import h11

from fleet.member import causes
from fleet.member.client import Access, ssl_context
from fleet.member.errors import MemberAway
from fleet.member.streaming.connections import connected_socket

_LONGEST_HEAD = 2**16
_LONGEST_ANSWER = 2**16
"""Bytes of an answer that is no switch: it is a sentence."""
Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A member's API, with what reading its certificates costs already paid: make it in a thread."""

    server: str
    context: ssl.SSLContext
    server_name: str
    private_ok: bool
    headers: tuple[tuple[str, str], ...]
    """Headers of authentication and impersonation."""

    @classmethod
    def of(cls, access: Access, *, private_ok: bool, headers: tuple[tuple[str, str], ...] = ()) -> "Endpoint":
        context = ssl_context(access)
        context.set_alpn_protocols(["http/1.1"])
        token = (("Authorization", f"Bearer {access.token}"),) if access.token else ()
        return cls(access.server, context, access.tls_server_name, private_ok, (*token, *headers))


@dataclass(frozen=True, slots=True)
class Answer:
    """What the member answered. ``connection`` is there only when it has switched."""

    status: int
    headers: Headers
    body: bytes = b""
    connection: "Connection | None" = None

    def header(self, name: bytes) -> bytes:
        return next((value for key, value in self.headers if key == name), b"")


async def request(endpoint: Endpoint, method: str, target: str, headers: Headers, *, timeout_s: float) -> Answer:
    """The member's answer; raises `MemberAway` when there is none within ``timeout_s``."""
    parts = urlsplit(endpoint.server)
    host, port = parts.hostname or "", parts.port or 443
    whole = [
        (b"host", parts.netloc.rpartition("@")[2].encode()),
        (b"user-agent", b"convoy"),
        *((name.encode(), value.encode("latin-1")) for name, value in endpoint.headers),
        *headers,
    ]
    connection = None
    try:
        async with asyncio.timeout(timeout_s):
            loop = asyncio.get_running_loop()
            sock = await connected_socket(host, port, private_ok=endpoint.private_ok)
            _, connection = await loop.create_connection(
                Connection, sock=sock, ssl=endpoint.context, server_hostname=endpoint.server_name or host
            )
            return await connection.ask(method, parts.path.rstrip("/") + target, whole)
    except (OSError, TimeoutError, ssl.SSLError, h11.ProtocolError) as e:
        if connection is not None:
            connection.abort()
        why = f"{endpoint.server.rstrip('/')} cannot be reached: {causes.in_words(e)}"
        raise MemberAway(why, raw=causes.raw(e)) from e
    except asyncio.CancelledError:
        if connection is not None:
            connection.abort()
        raise


class Connection(asyncio.Protocol):
    """Until the member has switched; then `hand_over` gives it to another protocol."""

    def __init__(self) -> None:
        self._h11 = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LONGEST_HEAD)
        self._answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._refusal: h11.Response | None = None
        self._body = b""
        self._early = b""
        self._transport: asyncio.Transport | None = None

    # for asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._answer.done():
            self._early += data  # arrived with the head, before reading was paused
            return
        try:
            self._h11.receive_data(data)
            self._read()
        except h11.RemoteProtocolError as e:
            self._fail(ConnectionError(f"the peer broke HTTP/1.1: {e}"))

    def eof_received(self) -> None:
        if not self._answer.done():
            self.data_received(b"")

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(exc or ConnectionError("the connection was closed"))

    # for the client

    async def ask(self, method: str, target: str, headers: Headers) -> Answer:
        assert self._transport is not None  # noqa: S101
        head = self._h11.send(h11.Request(method=method, target=target, headers=headers)) or b""
        self._transport.write(head + (self._h11.send(h11.EndOfMessage()) or b""))
        return await self._answer

    def hand_over(self, protocol: asyncio.Protocol) -> None:
        """From now on all that arrives goes to ``protocol``, from the first byte after the member's head."""
        assert self._transport is not None  # noqa: S101
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        if self._early:
            protocol.data_received(self._early)
        if self._transport.is_closing():
            protocol.connection_lost(None)
        else:
            self._transport.resume_reading()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _read(self) -> None:
        while not isinstance(event := self._h11.next_event(), type):
            match event:
                case h11.InformationalResponse(status_code=101):
                    return self._switched(event)
                case h11.Response():
                    self._refusal = event
                case h11.Data():
                    self._body += bytes(event.data)
                case h11.EndOfMessage():
                    return self._refused()
            if len(self._body) > _LONGEST_ANSWER:
                return self._refused()
        return None

    def _switched(self, event: h11.InformationalResponse) -> None:
        assert self._transport is not None  # noqa: S101
        self._transport.pause_reading()
        self._early = self._h11.trailing_data[0]
        self._answer.set_result(Answer(101, list(event.headers), connection=self))

    def _refused(self) -> None:
        assert self._refusal is not None  # noqa: S101
        if not self._answer.done():
            self._answer.set_result(Answer(self._refusal.status_code, list(self._refusal.headers), self._body))
        self.abort()

    def _fail(self, error: Exception) -> None:
        if not self._answer.done():
            self._answer.set_exception(error)
        self.abort()
