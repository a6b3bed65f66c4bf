"""A job's log as plain text: read to its end, or followed while it is written.

Served by the ASGI side of the web process, where a reader who goes away is noticed at once. A log that is followed is read by
the event loop; what is read to its end takes a thread of a pool of its own, never one of those that answer everybody else.
"""

import asyncio
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse
from rest_framework import serializers
from rest_framework.request import Request

from fleet.core.open_places import OpenPlaces
from fleet.db import connections
from fleet.errors import ConvoyError, NotFound, TooMany, Unavailable
from fleet.limits.seats import leave_seat
from fleet.member.errors import MemberError
from fleet.member.streaming.following import Following
from jobs.models import Job
from jobs.services.inspect import logs
from jobs.services.inspect.logs import Log, Query, Way

READERS = 32
OF_ONE = 16
"""Logs that one web process reads to their end at a time, in all and for one user: each has a thread."""
LOOK_AGAIN_S = 4.0
"""How often it is asked anew whether the reader may still read."""

REFUSED_WITHIN_S = 2.0
"""How long a member's refusal of a followed log is waited for: what comes later is the last line of the answer."""
Opening = asyncio.Future[Following]

reading, following = OpenPlaces(), OpenPlaces()
_threads = ThreadPoolExecutor(READERS, thread_name_prefix="logs")


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


def log_of(request: Request, job: Job, query: Query, may_go_on: Callable[[], bool]) -> StreamingHttpResponse:
    """One pod's log for the request's user: followed by the event loop where the log goes on and there is a loop."""
    user, plain = request.user, request._request
    if query.follow and isinstance(plain, ASGIRequest) and (way := logs.way_to(job, user, query)):
        return followed(plain, user.pk, way, may_go_on)
    return plain_text(plain, user.pk, logs.stream(job, user, query), may_go_on)


def plain_text(request: HttpRequest, user: Hashable, log: Log, may_go_on: Callable[[], bool]) -> StreamingHttpResponse:
    """Refusals that come before the first line are raised here, and become problem details.

    ``may_go_on`` is asked every few seconds: a token that is revoked, or a role that is taken back, ends the log.
    """
    if not reading.take(user, of_one=OF_ONE, in_all=READERS):
        log.close()
        raise _too_many(OF_ONE, READERS)
    body = Body(log, user, may_go_on)
    leave_seat()
    connections.give_back()
    try:
        body.begin()
    except BaseException:
        body.close()
        raise
    return _response(body.follow() if isinstance(request, ASGIRequest) else body)


def followed(request: HttpRequest, user: Hashable, way: Way, may_go_on: Callable[[], bool]) -> StreamingHttpResponse:
    """The bytes as the member sends them, or what is kept where it sends none; refusals are raised as by `plain_text`."""
    limits = settings.CONVOY_LIMITS.part
    if not following.take(user, of_one=limits.streams, in_all=limits.all_streams):
        raise _too_many(limits.streams, limits.all_streams)
    leave_seat()
    connections.give_back()
    try:
        opening, loop = async_to_sync(_opening)(way)
    except BaseException as e:
        following.give_back(user)
        kept = way.kept() if isinstance(e, NotFound | Unavailable) else None
        if kept is None:
            raise
        return plain_text(request, user, kept, may_go_on)
    return _response(Followed(opening, loop, user, may_go_on).chunks())


class Body:
    """The lines with their ends; gives its place and its connection back however the answer ends.

    Also when it is never begun: of a reader who goes away while the answer is prepared, the server drops the answer unread.
    """

    def __init__(self, log: Log, user: Hashable, may_go_on: Callable[[], bool]) -> None:
        self._log, self._may_go_on = log, may_go_on
        self._first: bytes | None = None
        self._end = weakref.finalize(self, _end, log, user)

    def begin(self) -> None:
        self._first = next(self._log, None)

    def __iter__(self) -> Iterator[bytes]:
        while (line := self._next()) is not None:
            yield line

    async def follow(self) -> AsyncIterator[bytes]:
        """As iteration, with each line awaited in a thread; ends when the reader goes away or may not read any more."""
        step = sync_to_async(self._next, thread_sensitive=False, executor=_threads)
        async for line in _while_allowed(step, self._may_go_on, self.close):
            yield line

    def close(self) -> None:
        """Called by the server at the end, also when the reader went away; a line that is awaited is given up."""
        self._end()

    def _next(self) -> bytes | None:
        line, self._first = self._first, None
        try:
            line = next(self._log, None) if line is None else line
        except ConvoyError as e:
            self._log.lines = iter(())
            return _last_line(e.message)
        return None if line is None else line + b"\n"


class Followed:
    """A member's answer; gives its place and its connection back as `Body` does, from whatever thread."""

    def __init__(
        self, opening: Opening, loop: asyncio.AbstractEventLoop, user: Hashable, may_go_on: Callable[[], bool]
    ) -> None:
        self._opening, self._may_go_on = opening, may_go_on
        self._end = weakref.finalize(self, _end_following, opening, loop, user)
        self._has_ended, self._last = False, b"\n"

    async def chunks(self) -> AsyncIterator[bytes]:
        """Until the log ends, its reader goes away or may not read any more."""
        async for chunk in _while_allowed(self._next, self._may_go_on, self._end):
            yield chunk

    async def _next(self) -> bytes | None:
        if self._has_ended:
            return None
        try:
            chunk = await (await asyncio.shield(self._opening)).read()
        except (ConvoyError, MemberError) as e:
            self._has_ended = True
            return _last_line(e.message) if self._last.endswith(b"\n") else b"\n" + _last_line(e.message)
        self._last = chunk[-1:]
        return chunk or None


async def _while_allowed(
    step: Callable[[], Awaitable[bytes | None]], may_go_on: Callable[[], bool], close: Callable[[], object]
) -> AsyncIterator[bytes]:
    """What ``step`` gives until it gives None, or ``may_go_on``, which is asked in a thread, says no."""
    now = asyncio.get_running_loop().time
    look_at = now() + LOOK_AGAIN_S
    read = asyncio.ensure_future(step())
    try:
        while True:
            await asyncio.wait({read}, timeout=max(look_at - now(), 0))
            if now() >= look_at:
                if not await sync_to_async(_asked_again, thread_sensitive=False)(may_go_on):
                    return
                look_at = now() + LOOK_AGAIN_S
            if read.done():
                if (text := read.result()) is None:
                    return
                read = asyncio.ensure_future(step())
                yield text
    finally:
        close()
        read.cancel()
        await asyncio.gather(read, return_exceptions=True)


def _asked_again(may_go_on: Callable[[], bool]) -> bool:
    try:
        return may_go_on()
    finally:
        connections.give_back()


async def _opening(way: Way) -> tuple[Opening, asyncio.AbstractEventLoop]:
    """The member's answer, which belongs to this loop. What it refuses soon is raised; a silent pod's begins later."""
    opening = asyncio.ensure_future(way.open())
    try:
        await asyncio.wait({opening}, timeout=REFUSED_WITHIN_S)
        if opening.done():
            opening.result()
    except BaseException:
        opening.cancel()
        raise
    return opening, asyncio.get_running_loop()


def _response(body: Any) -> StreamingHttpResponse:
    connections.give_back()
    response = StreamingHttpResponse(body, content_type="text/plain; charset=utf-8")
    response["Cache-Control"] = "no-store"
    response["X-Accel-Buffering"] = "no"
    return response


def _too_many(of_one: int, in_all: int) -> TooMany:
    return TooMany(
        f"too many logs are read at this moment ({of_one} by one user, {in_all} in all): end one, or try again"
    )


def _last_line(message: str) -> bytes:
    return f"convoy: {message}\n".encode()


def _end(log: Log, user: Hashable) -> None:
    log.close()
    reading.give_back(user)


def _end_following(opening: Opening, loop: asyncio.AbstractEventLoop, user: Hashable) -> None:
    following.give_back(user)
    with suppress(RuntimeError):  # the loop is closed, and with it all that is open in it
        loop.call_soon_threadsafe(_close, opening)


def _close(opening: Opening) -> None:
    if not opening.done():
        opening.cancel()
    elif not opening.cancelled() and opening.exception() is None:
        opening.result().close()
