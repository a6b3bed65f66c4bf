"""What one caller may take of a process: requests a second, requests at once, watches at once, attempts to sign in.

An ASGI application in front of another, the same for every door, which says of what sort a request is and how a refusal looks.
All of it is counted in this process alone, which takes its part where there are several.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

from fleet.limits.buckets import Buckets, TooMany
from fleet.limits.callers import Scope, address_of, caller_of
from fleet.limits.seats import SEAT, Bodies, Places, Receive, Seat, Seats
from fleet.limits.settings import Limits

Send = Callable[[dict[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Refusal = Callable[[int, str, int], tuple[bytes, bytes]]
"""The content type and the body of a status, a sentence, and the seconds after which it may be tried again."""


class Sort(Enum):
    REQUEST = "request"
    WATCH = "watch"
    """Lasts; the door leaves its seat once it has begun (`fleet.limits.seats.leave_seat`)."""
    STREAM = "stream"
    """As a watch, and the door counts those that are open."""
    SIGN_IN = "sign-in"
    PROBE = "probe"


class Limited:
    """``inner``, for those who keep within the limits."""

    def __init__(
        self,
        inner: Application,
        limits: Limits,
        sort: Callable[[Scope], Sort],
        refusal: Refusal,
        sign_in_refused: Callable[[str], None] = lambda address: None,
    ) -> None:
        """``sign_in_refused`` gets the address of each attempt that is refused here; it must not block."""
        limits = limits.part
        self._inner, self._limits, self._sort, self._refusal = inner, limits, sort, refusal
        self._sign_in_refused = sign_in_refused
        self._callers = Buckets(limits.per_s, limits.per_s * 4)
        self._addresses = Buckets(limits.per_s * 2, limits.per_s * 8)
        self._sign_ins = Buckets(limits.sign_ins_per_minute / 60, limits.sign_ins_per_minute)
        self._seats, self._bodies = Seats(limits), Bodies(limits)
        self._hashing = Places(limits.hashing, limits.waiting)
        self._watches: Counter[Hashable] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self._inner(scope, receive, send)
        begun = False

        async def sending(message: dict[str, Any]) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._admitted(scope, receive, sending)
        except TooMany as e:
            if begun:
                raise
            if scope["type"] == "http" and self._sort(scope) is Sort.SIGN_IN:
                self._sign_in_refused(address_of(scope))
            await self._refuse(scope, e, send)

    async def _admitted(self, scope: Scope, receive: Receive, send: Send) -> None:
        sort = Sort.STREAM if scope["type"] == "websocket" else self._sort(scope)
        if sort is Sort.PROBE:
            return await self._inner(scope, receive, send)
        self._check_size(scope)
        caller, origin = caller_of(scope)
        self._check_rate(caller, origin)
        if sort is Sort.SIGN_IN and (wait := self._sign_ins.take(address_of(scope))):
            raise TooMany("too many attempts to sign in from this address", after_s=wait)
        if scope["type"] == "websocket":
            return await self._seated(caller, origin, scope, receive, send)
        with self._watch(caller if sort is Sort.WATCH else None):
            async with self._bodies.whole(origin, receive) as again:
                if again is None:
                    return None
                if sort is not Sort.SIGN_IN:
                    return await self._seated(caller, origin, scope, again, send)
                async with self._hashing.one():
                    return await self._inner(scope, again, send)

    async def _seated(self, caller: Hashable, origin: Hashable, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._seats.one(caller, origin) as seat:
            before = SEAT.set(seat)
            try:
                await self._inner(scope, receive, _lending(seat, send))
            finally:
                SEAT.reset(before)

    @contextmanager
    def _watch(self, caller: Hashable | None) -> Iterator[None]:
        """Counts a watch of the caller; without a caller it is none."""
        if caller is None:
            yield
            return
        limits = self._limits
        if self._watches[caller] >= limits.watches or self._watches.total() >= limits.all_watches:
            raise TooMany(f"too many watches are open: {limits.watches} for one caller, {limits.all_watches} in all")
        self._watches[caller] += 1
        try:
            yield
        finally:
            self._watches[caller] -= 1
            if not self._watches[caller]:
                del self._watches[caller]

    def _check_size(self, scope: Scope) -> None:
        if len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"") > self._limits.url:
            raise TooMany(f"the URL is longer than {self._limits.url} bytes", status=414)
        if sum(len(name) + len(value) for name, value in scope["headers"]) > self._limits.headers:
            raise TooMany(f"the headers are longer than {self._limits.headers} bytes", status=431)

    def _check_rate(self, caller: Hashable, origin: Hashable) -> None:
        for buckets, key in ((self._addresses, origin), (self._callers, caller)):
            if wait := buckets.take(key):
                raise TooMany(
                    f"too many requests: {self._limits.per_s:.0f} a second are taken of one caller", after_s=wait
                )

    async def _refuse(self, scope: Scope, e: TooMany, send: Send) -> None:
        if scope["type"] == "websocket":
            return await send({"type": "websocket.close", "code": 4429})
        kind, body = self._refusal(e.status, e.message, e.after_s)
        headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
        headers.append((b"retry-after", str(e.after_s).encode()) if e.status == 429 else (b"connection", b"close"))
        await send({"type": "http.response.start", "status": e.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        return None


def _lending(seat: Seat, send: Send) -> Send:
    """The same; but while the reader takes nothing, not even the head of an answer, the seat is for others.

    It is not taken again here: an answer of which all is known needs none. What is done for the request after that takes it.
    """

    async def sending(message: dict[str, Any]) -> None:
        lending = asyncio.get_running_loop().call_soon(seat.lend)  # comes to nothing where the message is taken at once
        try:
            await send(message)
        finally:
            lending.cancel()

    return sending
