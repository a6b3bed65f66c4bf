"""Ports of a pod at the client: each of its connections is a pair of SPDY streams, one for data and one for what went wrong.

kubectl sends SPDY itself, or SPDY in the messages of a WebSocket; the streams are the same.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Coroutine
from typing import Any, cast

from simulator.streaming import spdy, websocket
from simulator.streaming.source import NotEntered

SPDY, TUNNELED = "portforward.k8s.io", "SPDY/3.1+portforward.k8s.io"


class Carrier(asyncio.Protocol):
    """What carries the connections to a pod's ports to the client."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._pipes: dict[int, Pipe] = {}
        self._opening: set[asyncio.Task[None]] = set()

    def send(self, stream: int, data: bytes, *, is_last: bool = False) -> None:
        raise NotImplementedError

    def over(self, stream: int) -> None:
        raise NotImplementedError

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def pause_writing(self) -> None:
        for pipe in self._pipes.values():
            pipe.hold(True)

    def resume_writing(self) -> None:
        for pipe in self._pipes.values():
            pipe.hold(False)

    def connection_lost(self, exc: Exception | None) -> None:
        for task in self._opening:
            task.cancel()
        for pipe in list(self._pipes.values()):
            pipe.abort()

    def _begin(self, joining: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(joining)
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    def _end(self) -> None:
        if self._transport is not None:
            self._transport.close()


class Forwarding(Carrier):
    def __init__(self, connect: Callable[[int], socket.socket], *, in_messages: bool) -> None:
        """``connect`` blocks for a moment; ``in_messages``: SPDY comes in messages of WebSocket."""
        super().__init__()
        self._connect = connect
        self._spdy = spdy.Session()
        self._reader = websocket.Reader() if in_messages else None
        self._errors: dict[str, int] = {}
        """The error stream of each connection, by its request id."""

    def data_received(self, data: bytes) -> None:
        try:
            for part in self._bytes_of(data):
                for event in self._spdy.feed(part):
                    self._handle(event)
        except (spdy.Broken, websocket.Broken):
            self._end()
        self.flush()

    def send(self, stream: int, data: bytes, *, is_last: bool = False) -> None:
        self._spdy.send(stream, data, is_last=is_last)
        self.flush()

    def flush(self) -> None:
        out, self._spdy.out = bytes(self._spdy.out), bytearray()
        if out and self._transport is not None and not self._transport.is_closing():
            self._transport.write(websocket.frame(out) if self._reader else out)

    def _bytes_of(self, data: bytes) -> list[bytes]:
        if self._reader is None:
            return [data]
        chunks = []
        for opcode, payload in self._reader.feed(data):
            if opcode == websocket.CLOSE:
                self._end()
            elif opcode == websocket.PING and self._transport is not None:
                self._transport.write(websocket.frame(payload, websocket.PONG))
            elif opcode == websocket.BINARY:
                chunks.append(payload)
        return chunks

    def _handle(self, event: spdy.Event) -> None:
        match event:
            case spdy.Opened():
                self._open(event)
            case spdy.Data() if pipe := self._pipes.get(event.stream):
                pipe.pass_on(event.data, is_last=event.is_last)
            case spdy.Reset() if pipe := self._pipes.get(event.stream):
                pipe.abort()

    def _open(self, event: spdy.Opened) -> None:
        request, kind = event.headers.get("requestid", ""), event.headers.get("streamtype", "")
        port = event.headers.get("port", "")
        if kind not in ("error", "data") or not port.isdigit():
            return self._spdy.reset(event.stream)
        self._spdy.reply(event.stream)
        if kind == "error":
            self._errors[request] = event.stream
            return None
        pipe = self._pipes[event.stream] = Pipe(self, event.stream)
        self._begin(self._join(pipe, int(port), request))
        return None

    async def _join(self, pipe: "Pipe", port: int, request: str) -> None:
        loop = asyncio.get_running_loop()
        try:
            sock = await loop.run_in_executor(None, self._connect, port)
            await loop.create_connection(lambda: pipe, sock=sock)
        except (NotEntered, OSError) as e:
            why = e.message if isinstance(e, NotEntered) else str(e)
            self._say(request, f"error forwarding port {port} to pod: {why}")
            self.over(pipe.stream)
            return
        self._say(request, "")

    def _say(self, request: str, why: str) -> None:
        if (stream := self._errors.pop(request, None)) is not None:
            self.send(stream, why.encode(), is_last=True)

    def over(self, stream: int) -> None:
        if self._pipes.pop(stream, None) is not None:
            self.send(stream, b"", is_last=True)


class Pipe(asyncio.Protocol):
    """One connection to a port of the pod."""

    def __init__(self, forwarding: Carrier, stream: int) -> None:
        self._forwarding, self.stream = forwarding, stream
        self._transport: asyncio.Transport | None = None
        self._early, self._is_last = bytearray(), False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        early, self._early = bytes(self._early), bytearray()
        self.pass_on(early, is_last=self._is_last)

    def data_received(self, data: bytes) -> None:
        self._forwarding.send(self.stream, data)

    def eof_received(self) -> bool:
        self._forwarding.over(self.stream)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._forwarding.over(self.stream)

    def pass_on(self, data: bytes, *, is_last: bool) -> None:
        if self._transport is None:
            self._early += data
            self._is_last |= is_last
            return
        if data and not self._transport.is_closing():
            self._transport.write(data)
        if is_last:
            with contextlib.suppress(OSError):
                self._transport.write_eof()

    def hold(self, is_held: bool) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading() if is_held else self._transport.resume_reading()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
