"""How both doors are served: no request's head longer than is reasonable, none sent without an end, no answer that is not
read, no TLS handshake without an end, no word of a proxy that is not trusted.
"""

import asyncio
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
_TOO_LONG = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class Protocol(Upgradable):
    """uvicorn's, which by itself keeps whatever comes until a head ends, and waits for ever for the rest of a request."""

    _in_head, _pending = True, 0
    _in_request = False
    """Between the end of a head and the end of its body."""
    _deadline: asyncio.TimerHandle | None = None
    """When the head, or the body, that is being sent must have ended; none between requests."""
    _unread: asyncio.TimerHandle | None = None
    """When the reader of an answer must have read something again; none while it keeps up."""
    _we_were_slow = False
    """Within the running deadline this side left bytes unread for a while, so that its end says nothing about the sender."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn narrows it as well
        super().connection_made(transport)
        self._expect(settings.CONVOY_HEAD_S)

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect(None)
        self._expect_reading(False)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_reading(True)

    def resume_writing(self) -> None:
        self._expect_reading(False)
        super().resume_writing()

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

    def _expect_reading(self, is_expected: bool) -> None:
        if self._unread is not None:
            self._unread.cancel()
        self._unread = self.loop.call_later(settings.CONVOY_SEND_S, self.transport.abort) if is_expected else None

    def _too_slow(self) -> None:
        """Unless it was this side that did not read: the request waited for its turn, and has its whole time after that."""
        self._deadline = None
        if self._we_were_slow or self.flow.read_paused:
            return self._expect(settings.CONVOY_BODY_S)
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            self.transport.write(_TOO_SLOW)
        return self.transport.close()


class _Loop(Loop):
    async def create_server(self, *args: Any, **options: Any) -> Any:
        if options.get("ssl"):
            options["ssl_handshake_timeout"] = settings.CONVOY_HEAD_S
        return await super().create_server(*args, **options)


def loop() -> asyncio.AbstractEventLoop:
    """The event loop of a server over TLS; uvicorn itself leaves a handshake a minute."""
    return _Loop()


def behind(proxies: list[str], application: Any) -> Any:
    """The application, with the client address as a trusted proxy reports it; without proxies the header is ignored."""
    return ProxyHeadersMiddleware(application, proxies) if proxies else application
