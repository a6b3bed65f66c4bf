"""Answers whether the product is ready, in front of limits and Django, with one look a second however many ask.

A look asks the database and the broker, and everybody may ask: so what a flood of them costs is what one costs.
"""

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from django.db import connection

from fleet.api.http.probes import readiness
from fleet.limits.callers import Scope
from fleet.limits.limited import Application, Send
from fleet.limits.seats import Receive

PATH = "/readyz"
FRESH_S = 1.0
Answer = tuple[int, bytes]
_thread = ThreadPoolExecutor(1, thread_name_prefix="readiness")
"""Of its own: a look waits for seconds where the broker is away."""


def look() -> Answer:
    try:
        status, body = readiness()
    finally:
        connection.close()
    return status, json.dumps(body).encode()


class Shared:
    """The last look, or the one that is being made."""

    def __init__(self, look: Callable[[], Answer]) -> None:
        self._look = look
        self._looking: asyncio.Task[tuple[float, Answer]] | None = None

    async def answer(self) -> Answer:
        if self._looking is None or not self._is_recent(self._looking):
            self._looking = asyncio.get_running_loop().create_task(self._made())
        _, answer = await asyncio.shield(self._looking)
        return answer

    def _is_recent(self, looking: "asyncio.Task[tuple[float, Answer]]") -> bool:
        loop = asyncio.get_running_loop()
        if looking.get_loop() is not loop:
            return False
        if not looking.done():
            return True
        return not looking.cancelled() and not looking.exception() and loop.time() - looking.result()[0] < FRESH_S

    async def _made(self) -> tuple[float, Answer]:
        loop = asyncio.get_running_loop()
        answer = await loop.run_in_executor(_thread, self._look)
        return loop.time(), answer


def before(inner: Application, look: Callable[[], Answer] = look) -> Application:
    """The application, behind the answers for this path."""
    shared = Shared(look)

    async def answering(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].rstrip("/") != PATH:
            return await inner(scope, receive, send)
        is_read = scope["method"] in ("GET", "HEAD")
        status, body = await shared.answer() if is_read else (405, b"")
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
            *([] if is_read else [(b"allow", b"GET, HEAD")]),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})
        return None

    return answering
