"""An API server made of a function that speaks HTTP/2, as a real one does: what it does wrong is the test's choice."""

import asyncio
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import PingReceived, RequestReceived, StreamReset, WindowUpdated

from fleet.kube import pki
from fleet.member.client import Access


class Http2Server:
    """``answer(target)`` returns status, body and whether the stream ends then; without it, it stays open as a watch does."""

    def __init__(self, home: Path, answer: Callable[[str], tuple[int, bytes, bool]], *, alpn: str = "h2") -> None:
        home.mkdir(parents=True, exist_ok=True)
        self._answer, self._alpn = answer, alpn
        self._pki = pki.ensure(home, datetime.now(UTC), ["member"])
        self.connections: list[_Connection] = []
        self.targets: list[str] = []
        self.loop = asyncio.new_event_loop()

    @property
    def access(self) -> Access:
        return Access(f"https://127.0.0.1:{self.port}", self._pki.authority.read_text(), "token")

    @property
    def open(self) -> list["_Connection"]:
        return [each for each in self.connections if not each.is_closed]

    def do(self, action: Callable[[], object]) -> None:
        self.loop.call_soon_threadsafe(action)

    async def start(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._pki.certificate, self._pki.key)
        context.set_alpn_protocols([self._alpn])
        server = await self.loop.create_server(lambda: _Connection(self, self._answer), "127.0.0.1", 0, ssl=context)
        self.port = server.sockets[0].getsockname()[1]


class _Connection(asyncio.Protocol):
    def __init__(self, server: Http2Server, answer: Callable[[str], tuple[int, bytes, bool]]) -> None:
        self._server, self._answer = server, answer
        self.h2 = H2Connection(H2Configuration(client_side=False))
        self.streams: dict[str, int] = {}
        self.reset: list[str] = []
        self._left: dict[int, tuple[bytes, bool]] = {}
        self.is_closed = self.is_mute = False
        self.pings = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self._server.connections.append(self)
        self.h2.initiate_connection()
        self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_closed = True

    def data_received(self, data: bytes) -> None:
        if self.is_mute:
            return
        for event in self.h2.receive_data(data):
            match event:
                case RequestReceived():
                    self._respond(event)
                case WindowUpdated():
                    for stream in list(self._left):
                        self._send(stream)
                case StreamReset():
                    self.reset += [target for target, stream in self.streams.items() if stream == event.stream_id]
                    self._left.pop(event.stream_id, None)
                case PingReceived():
                    self.pings += 1
        self.flush()

    def _respond(self, event: RequestReceived) -> None:
        target = dict(event.headers)[b":path"].decode()
        self._server.targets.append(target)
        self.streams[target] = event.stream_id
        status, body, ends = self._answer(target)
        self.h2.send_headers(event.stream_id, [(":status", str(status))])
        self.send(target, body, ends)

    def send(self, target: str, body: bytes, ends: bool = False) -> None:
        stream = self.streams[target]
        before, _ = self._left.get(stream, (b"", False))
        self._left[stream] = before + body, ends
        self._send(stream)
        self.flush()

    def _send(self, stream: int) -> None:
        body, ends = self._left.get(stream, (b"", False))
        while body and (room := min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)) > 0:
            self.h2.send_data(stream, body[:room])
            body = body[room:]
        self._left[stream] = body, ends
        if not body:
            del self._left[stream]
            if ends:
                self.h2.end_stream(stream)

    def flush(self) -> None:
        if data := self.h2.data_to_send():
            self.transport.write(data)  # type: ignore[attr-defined]


@contextmanager
def http2_server(
    home: Path, answer: Callable[[str], tuple[int, bytes, bool]], *, alpn: str = "h2"
) -> Iterator[Http2Server]:
    server = Http2Server(home, answer, alpn=alpn)
    thread = threading.Thread(target=server.loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.start(), server.loop).result(60)
    yield server
    server.loop.call_soon_threadsafe(server.loop.stop)
    thread.join(60)
