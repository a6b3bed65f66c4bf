"""Connections whose request asks for another protocol: WebSocket or SPDY, for exec, attach and port-forward.

ASGI has no word for SPDY, and its websockets are messages, not bytes. So the application is handed the connection itself:
``scope["extensions"][EXTENSION]`` answers 101 and gives the connection to a protocol of the application. Knows nothing of
what is sent then.
"""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from fleet.kube.server.request import Scope

EXTENSION = "convoy.upgrade"
Headers = Iterable[tuple[bytes, bytes]]


def upgrade_of(scope: Scope) -> bytes:
    """The protocol that the request asks for, in small letters; empty when it asks for none."""
    if b"upgrade" not in {word for value in values(scope, b"connection") for word in _words(value)}:
        return b""
    return next(values(scope, b"upgrade"), b"").strip().lower()


def values(scope: Scope, name: bytes) -> Iterator[bytes]:
    """Every header of this name (in small letters): some clients send one for each value."""
    return (value for key, value in scope["headers"] if key == name)


def _words(value: bytes) -> list[bytes]:
    return [word.strip().lower() for word in value.split(b",")]


class Upgradable(HttpToolsProtocol):
    """uvicorn's protocol, from which the application may take the connection."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        extended: Scope = {"extensions": {EXTENSION: self.switch}}
        self.scope.update(extended)  # type: ignore[typeddict-item]  # uvicorn knows no extensions of others

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        if self.parser.should_upgrade() and not self._should_upgrade():
            # The parser takes no other request after this one, whatever is answered.
            self.cycle.keep_alive = False

    def switch(self, headers: Headers, protocol: asyncio.Protocol) -> None:
        """Answers 101 and hands the connection over.

        Raises ConnectionError when the client has left.
        """
        if self.transport.is_closing():
            raise ConnectionError("the client has left")
        lines = (name + b": " + value + b"\r\n" for name, value in headers)
        self.transport.write(b"".join((b"HTTP/1.1 101 Switching Protocols\r\n", *lines, b"\r\n")))
        self.cycle.response_started = self.cycle.response_complete = True
        self.flow.resume_reading()
        self.transport.set_protocol(_Handed(protocol, self))
        protocol.connection_made(self.transport)

    def _unsupported_upgrade_warning(self) -> None:
        """The application answers the request."""


class _Handed(asyncio.Protocol):
    """The new protocol; the server keeps the former one in its books until the connection is closed."""

    def __init__(self, protocol: asyncio.Protocol, former: HttpToolsProtocol) -> None:
        self._former = former
        self.data_received = protocol.data_received  # type: ignore[method-assign]
        self.eof_received = protocol.eof_received  # type: ignore[method-assign]
        self.pause_writing = protocol.pause_writing  # type: ignore[method-assign]
        self.resume_writing = protocol.resume_writing  # type: ignore[method-assign]
        self._lost = protocol.connection_lost

    def connection_lost(self, exc: Exception | None) -> None:
        self._former.connection_lost(exc)
        self._lost(exc)


def take_over(scope: Scope, headers: Headers, protocol: asyncio.Protocol) -> None:
    switch: Any = scope["extensions"][EXTENSION]
    switch(headers, protocol)
