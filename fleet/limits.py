"""What one caller may take of a process: requests a second, requests at once, watches at once, attempts to sign in.

An ASGI application in front of another, the same for every door, which says of what sort a request is and how a refusal looks.
Callers are identified by their credentials, which are not checked yet, and by their addresses, which bound those that make
credentials up. Once a door has checked credentials it names their user (`USERS`), and from then on all tokens and sessions of
a user are one caller. All of it is counted in this process alone, which takes its part where there are several.
"""

import asyncio
import hashlib
import math
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
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
        200, "CONVOY_WATCHES", "watches of one caller at the Kubernetes-style door", least=1, most=1000
    )
    all_watches: int = setting(
        1000, "CONVOY_ALL_WATCHES", "watches of all callers at the Kubernetes-style door", least=1, most=100_000
    )
    streams: int = setting(
        100,
        "CONVOY_POD_STREAMS",
        "exec, attach and port-forward of one user that are open at once; as many followed logs beside them",
        least=1,
        most=10_000,
    )
    all_streams: int = setting(
        400,
        "CONVOY_ALL_POD_STREAMS",
        "exec, attach and port-forward of all users that are open at once; as many followed logs beside them",
        least=1,
        most=100_000,
    )
    sign_ins_per_minute: int = setting(
        20, "CONVOY_SIGN_INS_PER_MINUTE", "attempts to sign in a minute from one address", least=1, most=10_000
    )
    sockets: int = setting(16, "CONVOY_SOCKETS_PER_USER", "websockets of one user at once", least=1, most=1000)
    processes: int = setting(
        1,
        "CONVOY_DOOR_PROCESSES",
        "web processes, and kube processes, that share their callers: each allows its part of the limits of one caller",
        least=1,
        most=1000,
    )
    hashing: int = 2
    """Passwords checked at once: each check is a second of work by design."""
    waiting: int = 64
    seats: int = 16
    """Requests of all callers answered at once: as many as a process has threads for them."""
    reserved: int = 4
    """Of these seats only a caller that has none takes one."""
    body: int = 8 * 1024 * 1024
    bodies: int = 128 * 1024 * 1024
    """Bytes of bodies kept until they are complete: of one address a quarter."""
    url: int = 32 * 1024
    headers: int = 64 * 1024

    @property
    def part(self) -> "Limits":
        """What this process allows, so that all together allow no more than one alone; one of each at least."""
        return replace(
            self,
            per_s=self.per_s / self.processes,
            at_once=math.ceil(self.at_once / self.processes),
            watches=math.ceil(self.watches / self.processes),
            streams=math.ceil(self.streams / self.processes),
            processes=1,
        )


class Users:
    """The user behind credentials, as far as a door has checked them. It only counts: what a caller may do is asked anew."""

    def __init__(self, kept: int = _KEPT) -> None:
        self._users: OrderedDict[bytes, str] = OrderedDict()
        self._kept = kept

    def learn(self, authorization: bytes, user: Hashable) -> None:
        """Call once the header has been checked; from any thread."""
        self._users[_digest(authorization)] = f"user {user}"
        while len(self._users) > self._kept:
            with suppress(KeyError):  # another thread made room at the same moment
                self._users.popitem(last=False)

    def find(self, digest: bytes) -> Hashable:
        """The user, or else the credentials for themselves."""
        return self._users.get(digest, digest)


USERS = Users()


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
    """So many at once; others wait in order, and no more than so many of them."""

    def __init__(self, number: int, waiting: int) -> None:
        self._number, self._waiting, self._inside = number, waiting, 0
        self._turn = asyncio.Semaphore(number)

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        if self._inside >= self._number + self._waiting:
            raise TooMany(f"too many requests at once: {self._number} are answered, {self._waiting} wait")
        self._inside += 1
        try:
            async with self._turn:
                yield
        finally:
            self._inside -= 1


class Seats:
    """Requests that are answered at once. A seat that is free goes to the waiting caller that has the fewest.

    One caller, and one address, take a part of them only, and some are kept for callers that have none: so the request of a
    caller who is not busy waits for no request of those who are.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits, self._free = limits, limits.seats
        self._taken: Counter[Hashable] = Counter()
        self._taken_from: Counter[Hashable] = Counter()
        self._waiting: OrderedDict[Hashable, deque[tuple[asyncio.Future[None], Hashable]]] = OrderedDict()
        self._waiting_from: Counter[Hashable] = Counter()

    @asynccontextmanager
    async def one(self, caller: Hashable, address: Hashable) -> AsyncIterator[None]:
        await self._sit(caller, address)
        try:
            yield
        finally:
            self._leave(caller, address)

    async def _sit(self, caller: Hashable, address: Hashable) -> None:
        if caller not in self._waiting and self._may_sit(caller, address):
            return self._change(caller, address, 1)
        queue, limits = self._waiting.get(caller, ()), self._limits
        if len(queue) >= limits.waiting or self._waiting_from[address] >= limits.waiting * 4:
            raise TooMany(f"too many requests at once: {limits.at_once} are answered, {limits.waiting} wait")
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append((turn, address))
        self._waiting_from[address] += 1
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # seated in the very moment in which its reader left
                self._leave(caller, address)
            else:
                self._forget(caller, (turn, address))
            raise

    def _leave(self, caller: Hashable, address: Hashable) -> None:
        self._change(caller, address, -1)
        if caller in self._waiting:
            # Just answered: of callers with as few seats, those that have waited longer for one go first.
            self._waiting.move_to_end(caller)
        self._seat_waiting()

    def _may_sit(self, caller: Hashable, address: Hashable) -> bool:
        limits, taken = self._limits, self._taken[caller]
        if taken >= limits.at_once or self._taken_from[address] >= limits.at_once * 3 // 2:
            return False
        return self._free > (limits.reserved if taken else 0)

    def _seat_waiting(self) -> None:
        for caller in sorted(self._waiting, key=lambda each: self._taken[each]):
            while self._free and (queue := self._waiting.get(caller)):
                turn, address = queue[0]
                if not self._may_sit(caller, address):
                    break
                self._forget(caller, queue[0])
                self._change(caller, address, 1)
                turn.set_result(None)

    def _change(self, caller: Hashable, address: Hashable, by: int) -> None:
        self._free -= by
        for counter, key in ((self._taken, caller), (self._taken_from, address)):
            counter[key] += by
            if not counter[key]:
                del counter[key]

    def _forget(self, caller: Hashable, waiting: tuple[asyncio.Future[None], Hashable]) -> None:
        queue = self._waiting[caller]
        queue.remove(waiting)
        if not queue:
            del self._waiting[caller]
        self._waiting_from[waiting[1]] -= 1
        if not self._waiting_from[waiting[1]]:
            del self._waiting_from[waiting[1]]


class Bodies:
    """Bodies are read whole before their request takes a seat: a slow sender keeps none from others."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._kept: Counter[Hashable] = Counter()

    @asynccontextmanager
    async def whole(self, address: Hashable, receive: Receive) -> AsyncIterator[Receive | None]:
        """What gives the body again; None when the sender left before its end."""
        messages: list[dict[str, Any]] = []
        size, kept, more = 0, 0, True
        try:
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    yield None
                    return
                size, more = size + len(message.get("body", b"")), message.get("more_body", False)
                if size <= self._limits.body:
                    messages.append(message)
                    self._keep(address, size - kept)
                    kept = size
            if size > self._limits.body:
                raise TooMany(f"the body is longer than {self._limits.body} bytes", status=413)
            yield _again(messages, receive)
        finally:
            self._kept[address] -= kept
            if not self._kept[address]:
                del self._kept[address]

    def _keep(self, address: Hashable, more: int) -> None:
        if more and (
            self._kept[address] + more > self._limits.bodies // 4 or self._kept.total() + more > self._limits.bodies
        ):
            raise TooMany("too many long requests are being sent")
        self._kept[address] += more


def _again(messages: list[dict[str, Any]], receive: Receive) -> Receive:
    left = deque(messages)

    async def next_message() -> dict[str, Any]:
        return left.popleft() if left else await receive()

    return next_message


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
                self._sign_in_refused(_address(scope))
            await self._refuse(scope, e, send)

    async def _admitted(self, scope: Scope, receive: Receive, send: Send) -> None:
        sort = Sort.STREAM if scope["type"] == "websocket" else self._sort(scope)
        if sort is Sort.PROBE:
            return await self._inner(scope, receive, send)
        self._check_size(scope)
        address = _address(scope)
        caller = _caller(scope) or address
        self._check_rate(caller, address)
        if sort is Sort.STREAM:
            return await self._inner(scope, receive, send)
        if sort is Sort.WATCH:
            return await self._watch(caller, scope, receive, send)
        if sort is Sort.SIGN_IN and (wait := self._sign_ins.take(address)):
            raise TooMany("too many attempts to sign in from this address", after_s=wait)
        async with self._bodies.whole(address, receive) as again:
            if again is None:
                return None
            turn = self._hashing.one() if sort is Sort.SIGN_IN else self._seats.one(caller, address)
            async with turn:
                return await self._inner(scope, again, send)

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


def _address(scope: Scope) -> str:
    return str((scope.get("client") or ("",))[0])


def _caller(scope: Scope) -> Hashable:
    """The user, or a digest of the credentials; empty where there are none."""
    for name, value in scope["headers"]:
        if name == b"authorization":
            return USERS.find(_digest(value))
    for name, value in scope["headers"]:
        if name == b"cookie" and b"sessionid=" in value:
            return USERS.find(_digest(_session(value)))
    return b""


def _digest(credentials: bytes) -> bytes:
    return hashlib.sha256(credentials).digest()


def _session(cookies: bytes) -> bytes:
    try:
        cookie = SimpleCookie(cookies.decode("latin-1")).get("sessionid")
    except CookieError:
        return cookies
    return cookie.value.encode("latin-1") if cookie else cookies
