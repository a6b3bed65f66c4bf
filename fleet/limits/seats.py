"""Requests that are answered at once, shared out fairly among callers; and bodies that are read before a request is one."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

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
    """Taken until it is left; leaving it again changes nothing. Meanwhile it may be lent: then it is not in use."""

    def __init__(self, seats: "Seats", caller: Hashable, address: Hashable) -> None:
        self._seats, self._caller, self._address = seats, caller, address
        self._loop, self._is_left, self._is_lent = asyncio.get_running_loop(), False, False

    def leave(self) -> None:
        """Call from the event loop."""
        if not self._is_left:
            self._is_left = True
            self._seats.leave(self._caller, self._address, is_lent=self._is_lent)

    def leave_soon(self) -> None:
        """Call from any thread."""
        self._loop.call_soon_threadsafe(self.leave)

    def lend(self) -> None:
        if not (self._is_left or self._is_lent):
            self._is_lent = True
            self._seats.lend(self._caller, self._address)

    async def take_again(self) -> None:
        if self._is_lent and not self._is_left:
            await self._seats.take_again(self._caller, self._address)
            self._is_lent = False


SEAT: ContextVar[Seat | None] = ContextVar("seat", default=None)
"""That of the request which is being answered."""


def leave_seat() -> None:
    """The rest of the request that is being answered mostly waits, for changes or for a member: its seat goes to another.

    Until then it has used threads and the database as any other; so a flood of watches or streams that begin delays others
    no more than a flood of requests.
    """
    if (seat := SEAT.get()) is not None:
        seat.leave_soon()


async def take_seat_again() -> None:
    """Call before more is done for a request; returns at once where its seat was not lent."""
    if (seat := SEAT.get()) is not None:
        await seat.take_again()


class _Waiting(NamedTuple):
    turn: asyncio.Future[None]
    address: Hashable
    again: bool
    """Whether it has lent its seat."""


class Seats:
    """Requests that are answered at once. A seat that is free goes to the waiting caller that has the fewest.

    One caller, and one address, take a part of them only, and some are kept for callers that have none: so the request of a
    caller who is not busy waits for no request of those who are. A seat that is lent counts as the caller's own, so that one
    caller has no more answers in memory than seats; but it is free for others.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits, self._free = limits, limits.seats
        self._taken: Counter[Hashable] = Counter()
        self._begun: Counter[Hashable] = Counter()
        """Those with a seat, and those that have lent theirs."""
        self._begun_from: Counter[Hashable] = Counter()
        self._waiting: OrderedDict[Hashable, deque[_Waiting]] = OrderedDict()
        self._waiting_from: Counter[Hashable] = Counter()

    @asynccontextmanager
    async def one(self, caller: Hashable, address: Hashable) -> AsyncIterator[Seat]:
        await self._sit(caller, address)
        seat = Seat(self, caller, address)
        try:
            yield seat
        finally:
            seat.leave()

    async def _sit(self, caller: Hashable, address: Hashable) -> None:
        if caller not in self._waiting and self._may_sit(caller, address):
            return self._seat(caller, address)
        queue, limits = self._waiting.get(caller, ()), self._limits
        if len(queue) >= limits.waiting or self._waiting_from[address] >= limits.waiting * 4:
            raise TooMany(f"too many requests at once: {limits.at_once} are answered, {limits.waiting} wait")
        waiting = _Waiting(asyncio.get_running_loop().create_future(), address, again=False)
        self._waiting.setdefault(caller, deque()).append(waiting)
        self._waiting_from[address] += 1
        try:
            await waiting.turn
        except asyncio.CancelledError:
            if _is_seated(waiting.turn):
                self.leave(caller, address)
            else:
                self._forget(caller, waiting)
            raise

    def leave(self, caller: Hashable, address: Hashable, *, is_lent: bool = False) -> None:
        _add(self._begun, caller, -1)
        _add(self._begun_from, address, -1)
        self._free_one(caller, 0 if is_lent else 1)

    def lend(self, caller: Hashable, address: Hashable) -> None:
        self._free_one(caller, 1)

    async def take_again(self, caller: Hashable, address: Hashable) -> None:
        """Before the requests of the same caller that have not begun."""
        if self._may_go_on(caller):
            return self._take(caller)
        waiting = _Waiting(asyncio.get_running_loop().create_future(), address, again=True)
        self._waiting.setdefault(caller, deque()).appendleft(waiting)
        try:
            await waiting.turn
        except asyncio.CancelledError:
            if _is_seated(waiting.turn):
                self._free_one(caller, 1)
            else:
                self._forget(caller, waiting)
            raise
        return None

    def _may_sit(self, caller: Hashable, address: Hashable) -> bool:
        most = self._limits.at_once
        if self._begun[caller] >= most or self._begun_from[address] >= most * 3 // 2:
            return False
        return self._may_go_on(caller)

    def _may_go_on(self, caller: Hashable) -> bool:
        return self._free > (self._limits.reserved if self._taken[caller] else 0)

    def _free_one(self, caller: Hashable, seats: int) -> None:
        self._free += seats
        _add(self._taken, caller, -seats)
        if caller in self._waiting:
            # Just answered: of callers with as few seats, those that have waited longer for one go first.
            self._waiting.move_to_end(caller)
        self._seat_waiting()

    def _seat_waiting(self) -> None:
        for caller in sorted(self._waiting, key=lambda each: self._taken[each]):
            while self._free and (queue := self._waiting.get(caller)):
                first = queue[0]
                if first.turn.done():  # cancelled in this very turn of the loop: it will not sit
                    self._forget(caller, first)
                    continue
                if not (self._may_go_on(caller) if first.again else self._may_sit(caller, first.address)):
                    break
                self._forget(caller, first)
                if first.again:
                    self._take(caller)
                else:
                    self._seat(caller, first.address)
                first.turn.set_result(None)

    def _seat(self, caller: Hashable, address: Hashable) -> None:
        _add(self._begun, caller, 1)
        _add(self._begun_from, address, 1)
        self._take(caller)

    def _take(self, caller: Hashable) -> None:
        self._free -= 1
        _add(self._taken, caller, 1)

    def _forget(self, caller: Hashable, waiting: _Waiting) -> None:
        """Does nothing where it is forgotten already."""
        queue = self._waiting.get(caller, deque())
        if waiting not in queue:
            return
        queue.remove(waiting)
        if not queue:
            del self._waiting[caller]
        if not waiting.again:
            _add(self._waiting_from, waiting.address, -1)


def _is_seated(turn: "asyncio.Future[None]") -> bool:
    """Seated in the very moment in which its reader left."""
    return turn.done() and not turn.cancelled()


def _add(counter: Counter[Hashable], key: Hashable, by: int) -> None:
    counter[key] += by
    if not counter[key]:
        del counter[key]


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
            _add(self._kept, address, -kept)

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
