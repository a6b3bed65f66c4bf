"""Requests that are answered at once, shared out fairly among callers; and bodies that are read before a request is one."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

from fleet.limits.buckets import TooMany
from fleet.limits.settings import Limits

Receive = Callable[[], Awaitable[dict[str, Any]]]


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


class Seat:
    """Taken until it is left; leaving it again changes nothing."""

    def __init__(self, leave: Callable[[], None]) -> None:
        self._leave, self._loop, self._is_left = leave, asyncio.get_running_loop(), False

    def leave(self) -> None:
        """Call from the event loop."""
        if not self._is_left:
            self._is_left = True
            self._leave()

    def leave_soon(self) -> None:
        """Call from any thread."""
        self._loop.call_soon_threadsafe(self.leave)


SEAT: ContextVar[Seat | None] = ContextVar("seat", default=None)
"""That of the request which is being answered."""


def leave_seat() -> None:
    """The rest of the request that is being answered mostly waits, for changes or for a member: its seat goes to another.

    Until then it has used threads and the database as any other; so a flood of watches or streams that begin delays others
    no more than a flood of requests.
    """
    if (seat := SEAT.get()) is not None:
        seat.leave_soon()


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
    async def one(self, caller: Hashable, address: Hashable) -> AsyncIterator[Seat]:
        await self._sit(caller, address)
        seat = Seat(partial(self._leave, caller, address))
        try:
            yield seat
        finally:
            seat.leave()

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
