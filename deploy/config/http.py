"""How both doors are served: no request's head longer than is reasonable, none sent without an end, no answer that is not
read, no TLS handshake without an end, no word of a proxy that is not trusted.
"""

import asyncio
import errno
import socket
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from django.conf import settings
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from fleet.kube.server.upgrades import Headers, Upgradable

try:
    from uvloop import Loop
except ImportError:
    from asyncio import SelectorEventLoop as Loop  # type: ignore[assignment]  # where there is no uvloop

MAX_HEAD = 256 * 1024
"""Bytes of a head that has no end yet; what is complete is measured by `fleet.limits`, which answers more kindly."""
AT_ONCE = 4
"""Connections that begin before others have their turn."""
ACCEPTED = 100
"""Connections that are accepted before others have their turn."""
PAUSE_S = 1.0
"""After which it is tried again to accept, where the process had no file descriptor left."""
_TOO_LONG = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class EndsUnread:
    """Ends a connection whose client reads nothing, for which uvicorn waits for ever; before its protocol among the bases."""

    transport: asyncio.Transport
    loop: Any
    _unread: asyncio.TimerHandle | None = None
    """When the client must have read something again; none while it keeps up."""

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect_reading(False)
        super().connection_lost(exc)  # type: ignore[misc]  # of the protocol

    def pause_writing(self) -> None:
        super().pause_writing()  # type: ignore[misc]  # as above
        self._expect_reading(True)

    def resume_writing(self) -> None:
        self._expect_reading(False)
        super().resume_writing()  # type: ignore[misc]  # as above

    def _expect_reading(self, is_expected: bool) -> None:
        if self._unread is not None:
            self._unread.cancel()
        self._unread = self.loop.call_later(settings.CONVOY_SEND_S, self.transport.abort) if is_expected else None


class Protocol(EndsUnread, Upgradable):
    """uvicorn's, which by itself keeps whatever comes until a head ends, and waits for ever for the rest of a request."""

    _in_head, _pending = True, 0
    _in_request = False
    """Between the end of a head and the end of its body."""
    _deadline: asyncio.TimerHandle | None = None
    """When the head, or the body, that is being sent must have ended; none between requests."""
    _we_were_slow = False
    """Within the running deadline this side left bytes unread for a while, so that its end says nothing about the sender."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn narrows it as well
        super().connection_made(transport)
        self._expect(settings.CONVOY_HEAD_S)

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._in_request and self._deadline is None:
            self._expect(settings.CONVOY_HEAD_S)
        super().data_received(data)
        self._we_were_slow |= self.flow.read_paused
        if not self._in_head:
            return
        self._pending += len(data)
        if self._pending > MAX_HEAD and not self.transport.is_closing():
            self.transport.write(_TOO_LONG)
            self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._pending = True, 0

    def on_headers_complete(self) -> None:
        self._in_head, self._in_request = False, True
        self._expect(settings.CONVOY_BODY_S)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_request = False
        self._expect(None)
        super().on_message_complete()

    def switch(self, headers: Headers, protocol: asyncio.Protocol) -> None:
        """What is upgraded has deadlines of its own."""
        self._expect(None)
        self._expect_reading(False)
        super().switch(headers, protocol)

    def _expect(self, within_s: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._we_were_slow = self.flow.read_paused
        self._deadline = None if within_s is None else self.loop.call_later(within_s, self._too_slow)

    def _too_slow(self) -> None:
        """Unless it was this side that did not read: the request waited for its turn, and has its whole time after that."""
        self._deadline = None
        if self._we_were_slow or self.flow.read_paused:
            return self._expect(settings.CONVOY_BODY_S)
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            self.transport.write(_TOO_SLOW)
        return self.transport.close()


class Arrivals:
    """Listens at sockets, as what uvicorn knows as a server; connections begin in turns of the addresses they come from.

    A server of asyncio accepts as many as have come and shakes hands with all of them before anything else has its turn: a
    thousand TLS handshakes are a second of processor time. Here a few begin at a time, and what else the process has to do
    comes between. A connection over TLS takes part once it has sent something: one that stays silent costs nothing.
    """

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        begin: Callable[[socket.socket], Awaitable[Any]],
        *,
        speaks_within_s: float | None,
    ) -> None:
        """``begin`` makes a connection of a socket; with ``speaks_within_s`` once its first byte is there, within so long."""
        self.sockets, self._begin, self._speaks_within_s = list(sockets), begin, speaks_within_s
        self._loop = asyncio.get_running_loop()
        self._silent: dict[socket.socket, asyncio.TimerHandle] = {}
        self._waiting: OrderedDict[str, deque[socket.socket]] = OrderedDict()
        self._turn: asyncio.Handle | None = None
        self._beginning: set[asyncio.Task[None]] = set()
        for each in self.sockets:
            each.setblocking(False)
            self._loop.add_reader(each, self._accept, each)

    def close(self) -> None:
        for each in self.sockets:
            self._loop.remove_reader(each)
            each.close()
        for line in list(self._silent):
            self._forget(line)
            line.close()
        for lines in self._waiting.values():
            for line in lines:
                line.close()
        self._waiting.clear()
        self.sockets = []

    async def wait_closed(self) -> None:
        await asyncio.gather(*self._beginning, return_exceptions=True)

    def _accept(self, door: socket.socket) -> None:
        for _ in range(ACCEPTED):
            try:
                line, address = door.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # no file descriptor is left: those who wait in front of the process are not lost
                self._loop.remove_reader(door)
                self._loop.call_later(PAUSE_S, self._accept_again, door)
                return
            line.setblocking(False)
            if self._speaks_within_s is None:
                self._arrive(line, address[0])
            else:
                self._silent[line] = self._loop.call_later(self._speaks_within_s, self._give_up, line)
                self._loop.add_reader(line, self._speaks, line, address[0])

    def _accept_again(self, door: socket.socket) -> None:
        if door in self.sockets:
            self._loop.add_reader(door, self._accept, door)

    def _forget(self, line: socket.socket) -> None:
        self._silent.pop(line).cancel()
        self._loop.remove_reader(line)

    def _give_up(self, line: socket.socket) -> None:
        self._forget(line)
        line.close()

    def _speaks(self, line: socket.socket, host: str) -> None:
        self._forget(line)
        self._arrive(line, host)

    def _arrive(self, line: socket.socket, host: str) -> None:
        self._waiting.setdefault(host, deque()).append(line)
        if self._turn is None:
            self._turn = self._loop.call_soon(self._next)

    def _next(self) -> None:
        self._turn = None
        for _ in range(AT_ONCE):
            if not self._waiting:
                return
            host, lines = self._waiting.popitem(last=False)
            task = self._loop.create_task(self._connect(lines.popleft()))
            self._beginning.add(task)
            task.add_done_callback(self._beginning.discard)
            if lines:
                self._waiting[host] = lines  # behind all other addresses
        self._turn = self._loop.call_soon(self._next)

    async def _connect(self, line: socket.socket) -> None:
        try:
            await self._begin(line)
        except OSError:  # also what TLS raises: the other side left, or does not speak it
            line.close()


def listening(host: str, port: int) -> list[socket.socket]:
    """Sockets at each address of the host whose family the kernel has."""
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    missing: OSError | None = None
    try:
        for family, address in dict.fromkeys((each[0], each[4][:2]) for each in found):
            try:
                sockets.append(socket.create_server(address, family=family))
            except OSError as e:
                if e.errno != errno.EAFNOSUPPORT:
                    raise
                missing = e
    except OSError:
        for each in sockets:
            each.close()
        raise
    if missing is not None and not sockets:
        raise missing
    return sockets


class _Loop(Loop):
    async def create_server(self, protocol_factory: Any, *args: Any, **options: Any) -> Any:
        """As uvicorn calls it: with a socket, or with a host and a port."""
        tls = {"ssl": options["ssl"], "ssl_handshake_timeout": settings.CONVOY_HEAD_S} if options.get("ssl") else {}

        async def begin(line: socket.socket) -> None:
            await self.connect_accepted_socket(protocol_factory, line, **tls)

        sock = options.get("sock")
        where = options.get("host") or "", options.get("port") or 0
        sockets = [sock] if sock is not None else listening(*where)
        for each in sockets:
            each.listen(options["backlog"])
        return Arrivals(sockets, begin, speaks_within_s=settings.CONVOY_HEAD_S if tls else None)


def loop() -> asyncio.AbstractEventLoop:
    """The event loop of a server. uvicorn itself leaves a TLS handshake a minute, and begins all that come at once."""
    return _Loop()


def behind(proxies: list[str], application: Any) -> Any:
    """The application, with the client address as a trusted proxy reports it; without proxies the header is ignored."""
    return ProxyHeadersMiddleware(application, proxies) if proxies else application
