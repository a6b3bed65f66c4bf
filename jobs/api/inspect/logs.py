"""A job's log as plain text, line by line while it is written.

Served by the ASGI side of the web process, where a reader who goes away is noticed at once; each log that is followed takes a
thread of a pool of its own, never one of those that answer everybody else.
"""

import asyncio
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import BoundedSemaphore

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse
from rest_framework import serializers

from fleet.db import connections
from fleet.errors import ConvoyError, Unavailable
from jobs.services.inspect.logs import Log

FOLLOWERS = 32
"""Logs that one web process follows at a time."""
LOOK_AGAIN_S = 4.0
"""How often it is asked anew whether the reader may still read."""

_places = BoundedSemaphore(FOLLOWERS)
_threads = ThreadPoolExecutor(FOLLOWERS, thread_name_prefix="follow")


class LogsQuery(serializers.Serializer[dict[str, object]]):
    """What part of which pod's log."""

    pod = serializers.CharField(max_length=253, required=False, default="")
    role = serializers.CharField(max_length=63, required=False, default="")
    index = serializers.IntegerField(min_value=0, max_value=1_000_000, required=False, default=0)
    attempt = serializers.IntegerField(
        min_value=1, max_value=1_000_000, required=False, default=None, allow_null=True,
        help_text="by default the one that counts now, else the last of which a log is kept",
    )  # fmt: skip
    follow = serializers.BooleanField(required=False, default=False)
    tail = serializers.IntegerField(min_value=0, max_value=1_000_000, required=False, default=None, allow_null=True)


def plain_text(request: HttpRequest, log: Log, may_go_on: Callable[[], bool]) -> StreamingHttpResponse:
    """Refusals that come before the first line are raised here, and become problem details.

    ``may_go_on`` is asked every few seconds: a token that is revoked, or a role that is taken back, ends the log.
    """
    if not _places.acquire(blocking=False):
        log.close()
        raise Unavailable("too many logs are read at this moment: end one, or try again")
    body = Body(log, may_go_on)
    try:
        body.begin()
    except BaseException:
        body.close()
        raise
    connections.give_back()
    asynchronous = isinstance(request, ASGIRequest)
    response = StreamingHttpResponse(body.follow() if asynchronous else body, content_type="text/plain; charset=utf-8")
    response["Cache-Control"] = "no-store"
    response["X-Accel-Buffering"] = "no"
    return response


class Body:
    """The lines with their ends; gives its place and its connection back however the answer ends.

    Also when it is never begun: of a reader who goes away while the answer is prepared, the server drops the answer unread.
    """

    def __init__(self, log: Log, may_go_on: Callable[[], bool], look_again_s: float = LOOK_AGAIN_S) -> None:
        self._log, self._may_go_on, self._look_again_s = log, may_go_on, look_again_s
        self._first: bytes | None = None
        self._end = weakref.finalize(self, _end, log)

    def begin(self) -> None:
        self._first = next(self._log, None)

    def __iter__(self) -> Iterator[bytes]:
        while (line := self._next()) is not None:
            yield line

    async def follow(self) -> AsyncIterator[bytes]:
        """As iteration, with each line awaited in a thread; ends when the reader goes away or may not read any more."""
        step = sync_to_async(self._next, thread_sensitive=False, executor=_threads)
        now = asyncio.get_running_loop().time
        look_at = now() + self._look_again_s
        line = asyncio.ensure_future(step())
        try:
            while True:
                await asyncio.wait({line}, timeout=max(look_at - now(), 0))
                if now() >= look_at:
                    if not await sync_to_async(self._asked_again, thread_sensitive=False)():
                        return
                    look_at = now() + self._look_again_s
                if line.done():
                    if (text := line.result()) is None:
                        return
                    line = asyncio.ensure_future(step())
                    yield text
        finally:
            self.close()
            line.cancel()
            await asyncio.gather(line, return_exceptions=True)

    def close(self) -> None:
        """Called by the server at the end, also when the reader went away; a line that is awaited is given up."""
        self._end()

    def _asked_again(self) -> bool:
        try:
            return self._may_go_on()
        finally:
            connections.give_back()

    def _next(self) -> bytes | None:
        line, self._first = self._first, None
        try:
            line = next(self._log, None) if line is None else line
        except ConvoyError as e:
            self._log.lines = iter(())
            return f"convoy: {e.message}\n".encode()
        return None if line is None else line + b"\n"


def _end(log: Log) -> None:
    log.close()
    _places.release()
