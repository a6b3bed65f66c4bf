"""How both doors are served: no longer a request's head than is reasonable, no word of a proxy that is not trusted."""

from typing import Any

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD = 256 * 1024
"""Bytes of a head that has no end yet; what is complete is measured by `fleet.limits`, which answers more kindly."""
_TOO_LONG = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class Protocol(HttpToolsProtocol):
    """uvicorn's, which by itself keeps whatever comes until a head ends."""

    _in_head, _pending = True, 0

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
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
        self._in_head = False
        super().on_headers_complete()


def behind(proxies: list[str], application: Any) -> Any:
    """The application, told the address a trusted proxy names; without any, a caller's own word counts for nothing."""
    return ProxyHeadersMiddleware(application, proxies) if proxies else application
