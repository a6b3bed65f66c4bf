"""One HTTP/1.1 connection: one answer at a time, for servers in front of a member that speak nothing newer."""

import asyncio
from collections.abc import Callable
from typing import cast

import h11

from fleet.member.streaming.answer import Answer

_AHEAD = 2**20
"""Bytes that an answer may be ahead of its reader before the socket is read no further."""
Headers = list[tuple[str, str]]


class Http1(asyncio.Protocol):
    def __init__(self, idle: Callable[["Http1"], None]) -> None:
        """``idle`` is called when an answer was read whole and the connection takes another request."""
        self._idle = idle
        self._h11 = h11.Connection(h11.CLIENT)
        self._answer: Answer | None = None
        self._transport: asyncio.Transport | None = None
        self._ahead = 0

    # for asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._receive(data)

    def eof_received(self) -> None:
        self._receive(b"")

    def connection_lost(self, exc: Exception | None) -> None:
        self.abort(exc or ConnectionError("the connection was closed"))

    # for the client

    @property
    def is_usable(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    @property
    def is_open(self) -> bool:
        """Whether it takes a request."""
        return self.is_usable and self._h11.our_state is h11.IDLE

    def request(self, target: str, headers: Headers) -> Answer:
        self._answer = answer = Answer(self._consumed, self._ended)
        request = h11.Request(method="GET", target=target, headers=headers)
        self._write((self._h11.send(request) or b"") + (self._h11.send(h11.EndOfMessage()) or b""))
        return answer

    def abort(self, error: BaseException) -> None:
        if self._answer is not None:
            self._answer.fail(error)
        if self._transport is not None:
            self._transport.abort()

    def _receive(self, data: bytes) -> None:
        try:
            self._h11.receive_data(data)
            while not isinstance(event := self._h11.next_event(), type) and self._answer is not None:
                match event:
                    case h11.Response():
                        self._answer.began(event.status_code, event.headers)
                    case h11.Data():
                        self._ahead += len(event.data)
                        self._answer.feed(bytes(event.data), len(event.data))
                    case h11.EndOfMessage():
                        self._answer.complete()
                        return
                    case h11.ConnectionClosed():
                        return
        except h11.RemoteProtocolError as e:
            self.abort(ConnectionError(f"the peer broke HTTP/1.1: {e}"))
            return
        if self._ahead > _AHEAD and self._transport is not None:
            self._transport.pause_reading()

    def _consumed(self, size: int) -> None:
        self._ahead -= size
        if self._ahead <= _AHEAD and self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def _ended(self, is_whole: bool) -> None:
        self._answer = None
        if is_whole and self._h11.our_state is h11.DONE and self._h11.their_state is h11.DONE:
            self._h11.start_next_cycle()
            self._idle(self)
        elif self._transport is not None:
            self._transport.abort()

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)
