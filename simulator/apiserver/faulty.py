"""ASGI middleware that applies the faults of a simulated API server, so that the application does not know them.

Requests of the member's own controllers are exempt.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from fleet.kube.server.request import Receive, Scope, Send, disconnected
from simulator.apiserver.faults import Faults

App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Faulty:
    def __init__(self, app: App, faults: Faults, spares: Callable[[Scope], bool], stopped: asyncio.Event) -> None:
        """``spares`` returns True for requests that are exempt from faults."""
        self._app, self._faults, self._spares, self._stopped = app, faults, spares, stopped

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._spares(scope):
            await self._app(scope, receive, send)
            return
        connection = _Connection(scope, receive, send, self._faults)
        if not connection.breaks():
            await self._pause()
            await self._app(scope, receive, connection.send)
        if connection.broken:
            await disconnected(receive)

    async def _pause(self) -> None:
        if self._faults.slow_s:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), self._faults.slow_s)


class _Connection:
    def __init__(self, scope: Scope, receive: Receive, send: Send, faults: Faults) -> None:
        self._scope, self._receive, self._send, self._faults = scope, receive, send, faults
        self.broken = False

    def breaks(self) -> bool:
        """Whether the connection is broken. Breaks it if the server is away or the client has disconnected."""
        if not self.broken and (self._faults.away or self._scope["transport"].is_closing()):
            self._abort()
        return self.broken

    async def send(self, message: dict[str, Any]) -> None:
        """Sends, or breaks the connection. A response may be lost although the request was carried out."""
        whole = any(name == b"content-length" for name, _ in message.get("headers", ()))
        if whole and self._faults.breaks_answer():
            self._abort()
        if not self.breaks():
            await self._send(message)

    def _abort(self) -> None:
        self.broken = True
        self._scope["transport"].abort()
