"""The connections to one member: one, where it speaks HTTP/2; else one for each answer under way.

Addresses are checked before anything is sent to them, as `fleet.member.client` does.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from functools import partial
from urllib.parse import urlsplit

from fleet.member import addresses
from fleet.member.client import KEEPALIVE, Access, ssl_context
from fleet.member.streaming.answer import Answer
from fleet.member.streaming.http1 import Http1
from fleet.member.streaming.http2 import Http2

_IDLE = 4
"""Idle HTTP/1.1 connections kept."""


class Connections:
    """Used from the event loop only."""

    def __init__(self, access: Access, *, private_ok: bool) -> None:
        parts = urlsplit(access.server)
        self._host, self._port = parts.hostname or "", parts.port or 443
        self._authority, self._prefix = parts.netloc.rpartition("@")[2], parts.path.rstrip("/")
        self._server_name, self._private_ok = access.tls_server_name or self._host, private_ok
        self._context = ssl_context(access)
        self._context.set_alpn_protocols(["h2", "http/1.1"])
        self._shared: Http2 | None = None
        self._idle: list[Http1] = []
        self._open: set[Http1] = set()
        self._connecting = asyncio.Lock()
        self._is_http1 = self._is_closed = False

    async def request(self, target: str, headers: dict[str, str]) -> Answer:
        """Sends a GET. The caller limits the time and closes the answer."""
        target = self._prefix + target
        shared = await self._http2()
        if shared is not None:
            fixed = [(":method", "GET"), (":scheme", "https"), (":authority", self._authority), (":path", target)]
            return shared.request([*fixed, *((name.lower(), value) for name, value in headers.items())])
        connection = self._take_idle() or await self._connect_http1()
        return connection.request(target, [("Host", self._authority), *headers.items()])

    def close(self) -> None:
        self._is_closed = True
        error = ConnectionError("closed by this process")
        if self._shared is not None:
            self._shared.abort(error)
        for connection in self._open:
            connection.abort(error)

    async def _http2(self) -> Http2 | None:
        """The shared connection; None where the member speaks HTTP/1.1."""
        if self._is_http1:
            return None
        async with self._connecting:
            if self._is_http1 or (self._shared is not None and self._shared.is_open):
                return None if self._is_http1 else self._shared
            protocol = await self._connect()
            if isinstance(protocol, Http1):
                self._is_http1 = True
                self._keep(protocol)
                return None
            self._shared = protocol
            return protocol

    async def _connect_http1(self) -> Http1:
        protocol = await self._connect()
        if isinstance(protocol, Http2):  # it was replaced by a newer one
            self._is_http1, self._shared = False, protocol
            raise ConnectionError("it speaks HTTP/2 now")
        return protocol

    def _take_idle(self) -> Http1 | None:
        while self._idle:
            if (connection := self._idle.pop()).is_open:
                return connection
            self._open.discard(connection)
        return None

    def _keep(self, connection: Http1) -> None:
        self._open = {each for each in self._open if each.is_usable}
        if self._is_closed or len(self._idle) >= _IDLE:
            connection.abort(ConnectionError("not needed"))
        else:
            self._idle.append(connection)

    async def _connect(self) -> Http1 | Http2:
        loop = asyncio.get_running_loop()
        sock = await connected_socket(self._host, self._port, private_ok=self._private_ok)
        # From here on the socket is the transport's: closed under it, its number would be given to another connection.
        transport, chosen = await loop.create_connection(
            partial(_Chosen, self._keep), sock=sock, ssl=self._context, server_hostname=self._server_name
        )
        protocol = chosen.protocol
        if self._is_closed:
            transport.abort()
            raise ConnectionError("closed by this process")
        if isinstance(protocol, Http1):
            self._open.add(protocol)
        return protocol


async def connected_socket(host: str, port: int, *, private_ok: bool) -> socket.socket:
    """A connection to the first address of the host that may be called and answers; raises OSError."""
    loop = asyncio.get_running_loop()
    error = OSError(f"{host} has no address")
    for family, kind, proto, _, address in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        if refusal := addresses.refusal(str(address[0]), private_ok=private_ok):
            error = OSError(refusal)
            continue
        sock = socket.socket(family, kind, proto)
        try:
            sock.setblocking(False)
            for option in KEEPALIVE:
                sock.setsockopt(*option)
            await loop.sock_connect(sock, address)
        except OSError as e:
            sock.close()
            error = e
            continue
        except BaseException:
            sock.close()
            raise
        return sock
    raise error


class _Chosen(asyncio.Protocol):
    """Becomes the protocol that the TLS handshake has chosen."""

    def __init__(self, idle: Callable[[Http1], None]) -> None:
        self._idle = idle

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        tls: ssl.SSLObject = transport.get_extra_info("ssl_object")
        self.protocol = Http2() if tls.selected_alpn_protocol() == "h2" else Http1(self._idle)
        transport.set_protocol(self.protocol)
        self.protocol.connection_made(transport)
