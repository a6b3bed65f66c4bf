"""What one caller may take of a process: requests a second, requests at once, watches at once, attempts to sign in.

An ASGI application in front of another, the same for every door, which says of what sort a request is and how a refusal looks.
Callers are told apart by their credentials, which are not checked yet, and by their addresses, which bound those that make
credentials up. All of it is counted in this process alone.
"""

import asyncio
import hashlib
import math
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum
from http.cookies import CookieError, SimpleCookie
from typing import Any

from fleet.core.operator_settings import setting

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Refusal = Callable[[int, str, int], tuple[bytes, bytes]]
"""The content type and the body of a status, a sentence, and the seconds after which it may be tried again."""

_KEPT = 10_000
"""Callers that are remembered; beyond that those that asked longest ago are forgotten."""


class Sort(Enum):
    REQUEST = "request"
    WATCH = "watch"
    STREAM = "stream"
    """Lasts, and is counted elsewhere."""
    SIGN_IN = "sign-in"
    PROBE = "probe"


@dataclass(frozen=True, slots=True)
class Limits:
    """Of each of the first three an address may have more than one caller, since several callers may share it."""

    per_s: float = setting(
        500.0,
        "CONVOY_REQUESTS_PER_S",
        "requests a second of one caller (credentials, else address), bursts of four times that; twice as many of one address",
        least=0.1,
    )
    at_once: int = setting(
        8,
        "CONVOY_REQUESTS_AT_ONCE",
        "requests of one caller answered at once, of one address half as many again; 64 more wait",
        least=1,
        most=1000,
    )
    watches: int = setting(
        200, "CONVOY_WATCHES", "watches of one caller at the Kubernetes-style door; 1,000 in all", least=1, most=1000
    )
    all_watches: int = 1000
    sign_ins_per_minute: int = 20
    """From one address."""
    hashing: int = 2
    """Passwords checked at once: each check is a second of work by design."""
    waiting: int = 64
    url: int = 32 * 1024
    headers: int = 64 * 1024


class Buckets:
    """A token bucket for each key."""

    def __init__(self, per_s: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s, self._burst, self._clock = per_s, burst, clock
        self._levels: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def take(self, key: Hashable) -> float:
        """0 if it may go on; else the seconds until it may, and nothing is taken."""
        now = self._clock()
        level, at = self._levels.pop(key, (self._burst, now))
        level = min(self._burst, level + (now - at) * self._per_s)
        allowed = level >= 1
        self._levels[key] = (level - allowed, now)
        if len(self._levels) > _KEPT:
            self._levels.popitem(last=False)
        return 0.0 if allowed else (1 - level) / self._per_s


class TooMany(Exception):
    def __init__(self, message: str, *, after_s: float = 1.0, status: int = 429) -> None:
        super().__init__(message)
        self.message, self.status, self.after_s = message, status, max(1, math.ceil(after_s))


class Places:
    """So many at once for each key; others wait in order, and no more than so many of them."""

    def __init__(self, number: int, waiting: int) -> None:
        self._number, self._waiting = number, waiting
        self._open: dict[Hashable, asyncio.Semaphore] = {}
        self._inside: Counter[Hashable] = Counter()

    @asynccontextmanager
    async def one(self, key: Hashable) -> AsyncIterator[None]:
        if self._inside[key] >= self._number + self._waiting:
            raise TooMany(f"too many requests at once: {self._number} are answered, {self._waiting} wait")
        turn = self._open.setdefault(key, asyncio.Semaphore(self._number))
        self._inside[key] += 1
        try:
            async with turn:
                yield
        finally:
            self._inside[key] -= 1
            if not self._inside[key]:
                del self._inside[key], self._open[key]


class Limited:
    """``inner``, for those who keep within the limits."""

    def __init__(self, inner: Application, limits: Limits, sort: Callable[[Scope], Sort], refusal: Refusal) -> None:
        self._inner, self._limits, self._sort, self._refusal = inner, limits, sort, refusal
        self._callers = Buckets(limits.per_s, limits.per_s * 4)
        self._addresses = Buckets(limits.per_s * 2, limits.per_s * 8)
        self._sign_ins = Buckets(limits.sign_ins_per_minute / 60, limits.sign_ins_per_minute)
        self._places = Places(limits.at_once, limits.waiting)
        self._of_address = Places(limits.at_once * 3 // 2, limits.waiting * 4)
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
            await self._refuse(scope, e, send)

    async def _admitted(self, scope: Scope, receive: Receive, send: Send) -> None:
        sort = Sort.STREAM if scope["type"] == "websocket" else self._sort(scope)
        if sort is Sort.PROBE:
            return await self._inner(scope, receive, send)
        self._check_size(scope)
        address = (scope.get("client") or ("",))[0]
        caller = _caller(scope) or address
        self._check_rate(caller, address)
        if sort is Sort.STREAM:
            return await self._inner(scope, receive, send)
        if sort is Sort.WATCH:
            return await self._watch(caller, scope, receive, send)
        if sort is Sort.SIGN_IN:
            if wait := self._sign_ins.take(address):
                raise TooMany("too many attempts to sign in from this address", after_s=wait)
            async with self._hashing.one(None):
                return await self._inner(scope, receive, send)
        async with self._places.one(caller), self._of_address.one(address):
            return await self._inner(scope, receive, send)

    async def _watch(self, caller: Hashable, scope: Scope, receive: Receive, send: Send) -> None:
        limits = self._limits
        if self._watches[caller] >= limits.watches or self._watches.total() >= limits.all_watches:
            raise TooMany(f"too many watches are open: {limits.watches} for one caller, {limits.all_watches} in all")
        self._watches[caller] += 1
        try:
            await self._inner(scope, receive, send)
        finally:
            self._watches[caller] -= 1
            if not self._watches[caller]:
                del self._watches[caller]

    def _check_size(self, scope: Scope) -> None:
        if len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"") > self._limits.url:
            raise TooMany(f"the URL is longer than {self._limits.url} bytes", status=414)
        if sum(len(name) + len(value) for name, value in scope["headers"]) > self._limits.headers:
            raise TooMany(f"the headers are longer than {self._limits.headers} bytes", status=431)

    def _check_rate(self, caller: Hashable, address: str) -> None:
        for buckets, key in ((self._addresses, address), (self._callers, caller)):
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


def _caller(scope: Scope) -> bytes:
    """A digest of the credentials; empty where there are none."""
    for name, value in scope["headers"]:
        if name == b"authorization":
            return hashlib.sha256(value).digest()
    for name, value in scope["headers"]:
        if name == b"cookie" and b"sessionid=" in value:
            return hashlib.sha256(_session(value)).digest()
    return b""


def _session(cookies: bytes) -> bytes:
    try:
        found = SimpleCookie(cookies.decode("latin-1")).get("sessionid")
    except CookieError:
        return cookies
    return found.value.encode("latin-1") if found else cookies
