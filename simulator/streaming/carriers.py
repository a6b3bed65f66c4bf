"""What carries the channels of a session: messages of WebSocket (``v4`` and ``v5.channel.k8s.io``), or streams of SPDY."""

import asyncio
import json
from collections.abc import Iterable
from typing import Any, cast

from simulator.streaming import spdy, websocket
from simulator.streaming.sessions import Session

V4, V5 = "v4.channel.k8s.io", "v5.channel.k8s.io"
_NUMBERS = {"stdin": 0, "stdout": 1, "stderr": 2, "error": 3, "resize": 4}
_NAMES = {number: name for name, number in _NUMBERS.items()}
_CLOSE_S = 5.0
"""For the client's own close frame, after which the connection is closed."""
_CLOSED = 255
"""In version 5: the channel that follows is closed."""


class _Carrier(asyncio.Protocol):
    def __init__(self, session: Session) -> None:
        self._session = session
        self._transport: asyncio.Transport | None = None
        self._is_over = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def pause_writing(self) -> None:
        self._session.hold(True)

    def resume_writing(self) -> None:
        self._session.hold(False)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._is_over:
            self._is_over = True
            self._session.lost()

    def hold(self, is_held: bool) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading() if is_held else self._transport.resume_reading()

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def _close(self) -> None:
        self._is_over = True
        if self._transport is not None:
            self._transport.close()

    def _abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class WebSocketCarrier(_Carrier):
    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._reader = websocket.Reader()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._session.begin(self)

    def data_received(self, data: bytes) -> None:
        try:
            for opcode, payload in self._reader.feed(data):
                self._handle(opcode, payload)
        except websocket.Broken:
            self._abort()

    def send(self, channel: str, data: bytes) -> None:
        self._write(websocket.frame(bytes([_NUMBERS[channel]]) + data))

    def finish(self, status: dict[str, Any]) -> None:
        if not self._is_over:
            self.send("error", json.dumps(status).encode())
            self._write(websocket.close_frame())
            self._is_over = True
            asyncio.get_running_loop().call_later(_CLOSE_S, self._abort)

    def _handle(self, opcode: int, payload: bytes) -> None:
        if opcode == websocket.PING:
            return self._write(websocket.frame(payload, websocket.PONG))
        if opcode == websocket.CLOSE:
            return self._close() if self._is_over else self._abort()
        if self._is_over:
            return None
        if opcode not in (websocket.TEXT, websocket.BINARY) or not payload:
            return None
        if payload[0] == _CLOSED and len(payload) > 1:
            return self._session.closed(_NAMES.get(payload[1], ""))
        return self._session.received(_NAMES.get(payload[0], ""), payload[1:])


class SpdyCarrier(_Carrier):
    """The client opens a stream for each channel; the session begins when all are there."""

    def __init__(self, session: Session, channels: Iterable[str]) -> None:
        super().__init__(session)
        self._spdy = spdy.Session()
        self._missing = set(channels)
        self._streams: dict[str, int] = {}
        self._early: list[spdy.Data] = []

    def data_received(self, data: bytes) -> None:
        try:
            for event in self._spdy.feed(data):
                self._handle(event)
        except spdy.Broken:
            self._abort()
            return
        self._flush()

    def send(self, channel: str, data: bytes) -> None:
        if channel in self._streams:
            self._spdy.send(self._streams[channel], data)
            self._flush()

    def finish(self, status: dict[str, Any]) -> None:
        if self._is_over:
            return
        self._spdy.send(self._streams["error"], json.dumps(status).encode(), is_last=True)
        for channel in ("stdout", "stderr"):
            if channel in self._streams:
                self._spdy.send(self._streams[channel], b"", is_last=True)
        self._flush()
        self._close()

    def _handle(self, event: spdy.Event) -> None:
        match event:
            case spdy.Opened():
                self._open(event)
            case spdy.Data() if self._missing:
                self._early.append(event)
            case spdy.Data():
                self._pass(event)

    def _open(self, event: spdy.Opened) -> None:
        channel = event.headers.get("streamtype", "")
        if channel not in self._missing:
            return self._spdy.reset(event.stream)
        self._missing.discard(channel)
        self._streams[channel] = event.stream
        self._spdy.reply(event.stream)
        if not self._missing:
            self._session.begin(self)
            for data in self._early:
                self._pass(data)
        return None

    def _pass(self, event: spdy.Data) -> None:
        channel = next((name for name, stream in self._streams.items() if stream == event.stream), "")
        if event.data:
            self._session.received(channel, event.data)
        if event.is_last:
            self._session.closed(channel)

    def _flush(self) -> None:
        out, self._spdy.out = bytes(self._spdy.out), bytearray()
        if out:
            self._write(out)
