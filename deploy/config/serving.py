"""uvicorn for processes that are mostly idle: it sleeps until there is a request, or until it has to end.

uvicorn itself wakes ten times a second, to see whether it has to end and to renew the Date header.
"""

import asyncio
import time
from email.utils import formatdate

import uvicorn
from uvicorn.server import ServerState


class State(ServerState):
    """The Date header is made for the request that needs it, at most once a second."""

    _second = 0
    _headers: list[tuple[bytes, bytes]]

    @property
    def default_headers(self) -> list[tuple[bytes, bytes]]:
        second = int(time.time())
        if second != self._second:
            self._second, self._headers = second, [(b"date", formatdate(second, usegmt=True).encode())]
        return self._headers

    @default_headers.setter
    def default_headers(self, headers: list[tuple[bytes, bytes]]) -> None:
        self._headers = headers


class Server(uvicorn.Server):
    _loop: asyncio.AbstractEventLoop | None = None
    _ends = False

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.server_state = State()
        self._ending = asyncio.Event()

    @property
    def should_exit(self) -> bool:
        return self._ends

    @should_exit.setter
    def should_exit(self, ends: bool) -> None:
        """Set by uvicorn's signal handler, or from another thread."""
        self._ends = ends
        if ends and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ending.set)

    async def main_loop(self) -> None:
        # First the loop, then the look: a signal before it is seen here, one after it sets the event.
        self._loop = asyncio.get_running_loop()
        if not self.should_exit:
            await self._ending.wait()
