"""A job's log as plain text, line by line while it is written.

Served by the ASGI side of the web process, where a reader who goes away is noticed at once; each log that is followed takes a
thread of a pool of its own, never one of those that answer everybody else.
"""

from collections.abc import AsyncIterator, Iterator
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

_places = BoundedSemaphore(FOLLOWERS)
_threads = ThreadPoolExecutor(FOLLOWERS, thread_name_prefix="follow")


class LogsQuery(serializers.Serializer[dict[str, object]]):
    """What part of which pod's log."""

    pod = serializers.CharField(max_length=253, required=False, default="")
    role = serializers.CharField(max_length=63, required=False, default="")
    index = serializers.IntegerField(min_value=0, max_value=1_000_000, required=False, default=0)
    follow = serializers.BooleanField(required=False, default=False)
    tail = serializers.IntegerField(min_value=0, max_value=1_000_000, required=False, default=None, allow_null=True)


def plain_text(request: HttpRequest, log: Log) -> StreamingHttpResponse:
    """Refusals that come before the first line are raised here, and become problem details."""
    if not _places.acquire(blocking=False):
        log.close()
        raise Unavailable("too many logs are read at this moment: end one, or try again")
    body = Body(log)
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
    """The lines with their ends; gives its place and its connection back however the answer ends."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._first: bytes | None = None
        self._held = True

    def begin(self) -> None:
        self._first = next(self._log, None)

    def __iter__(self) -> Iterator[bytes]:
        while (line := self._next()) is not None:
            yield line

    async def follow(self) -> AsyncIterator[bytes]:
        """As iteration, with each line awaited in a thread; ends at once when the reader goes away."""
        step = sync_to_async(self._next, thread_sensitive=False, executor=_threads)
        try:
            while (line := await step()) is not None:
                yield line
        finally:
            self.close()

    def close(self) -> None:
        """Called by the server at the end, also when the reader went away; a line that is awaited is given up."""
        self._log.close()
        if self._held:
            self._held = False
            _places.release()

    def _next(self) -> bytes | None:
        line, self._first = self._first, None
        try:
            line = next(self._log, None) if line is None else line
        except ConvoyError as e:
            self._log.lines = iter(())
            return f"convoy: {e.message}\n".encode()
        return None if line is None else line + b"\n"
