"""Two connections, of which each is sent what arrives at the other: no thread, and nothing kept but what is on its way.

It passes bytes and knows neither callers nor protocols.
"""

import asyncio
import contextlib
from typing import cast

from fleet.member.client import KEEPALIVE

_FLUSH_S = 5.0
"""For what is still on its way when one end has closed."""


class Tunnel:
    """Lasts until one end closes, or `end` is called."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._done: asyncio.Future[str] = self._loop.create_future()
        self.client, self.pod = End(self, "the client"), End(self, "the cluster")
        self.used_at = self._loop.time()
        """When a byte was last seen."""

    @property
    def is_over(self) -> bool:
        return self._done.done()

    async def over(self) -> str:
        """Why it ended, once it has."""
        return await asyncio.shield(self._done)

    def end(self, why: str) -> None:
        """Closes both ends at once; what is on its way is lost."""
        self._finish(why)
        for end in (self.client, self.pod):
            end.abort()

    def passed(self, end: "End", data: bytes) -> None:
        self.used_at = self._loop.time()
        self.other(end).write(data)

    def closed(self, end: "End") -> None:
        """What the end sent before is still written to the other, which is closed then."""
        self._finish(f"{end.name} closed it")
        other = self.other(end)
        other.close()
        self._loop.call_later(_FLUSH_S, other.abort)

    def other(self, end: "End") -> "End":
        return self.pod if end is self.client else self.client

    def _finish(self, why: str) -> None:
        if not self._done.done():
            self._done.set_result(why)


class End(asyncio.Protocol):
    """One of the two connections. It is not read while the other takes nothing."""

    def __init__(self, tunnel: Tunnel, name: str) -> None:
        self.name, self.count = name, 0
        """``count``: bytes that have arrived."""
        self._tunnel = tunnel
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        sock = transport.get_extra_info("socket")
        for option in KEEPALIVE if sock is not None else ():
            with contextlib.suppress(OSError):
                sock.setsockopt(*option)

    def data_received(self, data: bytes) -> None:
        self.count += len(data)
        self._tunnel.passed(self, data)

    def pause_writing(self) -> None:
        self._tunnel.other(self).hold(True)

    def resume_writing(self) -> None:
        self._tunnel.other(self).hold(False)

    def connection_lost(self, exc: Exception | None) -> None:
        self._tunnel.closed(self)

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def hold(self, is_held: bool) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if is_held:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
