"""Readers that do not read: their lists, watches and sockets wait for them, and keep nothing that others need."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from deploy.config.kube import application
from fleet import consumers
from fleet.api.http import limits as rest
from fleet.changes import events, journal
from fleet.kubeapi import limits as kube
from fleet.limits.limited import Limited
from fleet.limits.seats import Seats
from fleet.limits.settings import Limits
from jobs.models import Dependent
from tests.support.asgi_door import CONFIG_MAPS, Reader, token_of

FEW = Limits(at_once=2, seats=4, reserved=1, waiting=9)
COUNT = 520


def run(story: Callable[[], Awaitable[Any]]) -> Any:
    async def within() -> Any:
        async with asyncio.timeout(120):
            return await story()

    return asyncio.run(within())


@pytest.fixture
def maps(transactional_db: None) -> list[str]:
    names = [f"object-{number:04}" for number in range(COUNT)]
    Dependent.objects.bulk_create(
        Dependent(kind="ConfigMap", namespace="default", name=name, created_at=timezone.now(), resource_version=1,
                  manifest={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}})
        for name in names
    )  # fmt: skip
    return names


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("query", [b"", b"watch=true", b"watch=true&sendInitialEvents=true&allowWatchBookmarks=true"])
def test_slow_readers_keep_no_seat_from_others_and_get_all_in_the_end(maps: list[str], query: bytes) -> None:
    """Of every seat there is, and more: each user's own number of answers is what one may keep waiting."""
    tokens = {name: token_of(name) for name in ("mal", "eve", "ann", "joe", "bob")}

    async def story() -> None:
        door = Limited(application(), FEW, kube.sort, kube.refusal)
        for token in tokens.values():
            await Reader(door, token, CONFIG_MAPS, b"limit=1").task
        slow = [
            Reader(door, tokens[name], CONFIG_MAPS, query, is_slow=True)
            for name in ("mal", "eve", "ann", "joe")
            for _ in range(2)
        ]
        await asyncio.gather(*(reader.stuck.wait() for reader in slow))
        third = Reader(door, tokens["mal"], CONFIG_MAPS, b"limit=1")
        innocent = Reader(door, tokens["bob"], CONFIG_MAPS, b"limit=1")
        await innocent.task
        assert innocent.code == 200 and not third.task.done(), "it waits for the same user's answers alone"
        for reader in slow:
            reader.goes_on.set()
        await third.task
        while any(maps[-1].encode() not in reader.body for reader in slow):
            await asyncio.sleep(0.01)
        for reader in slow:
            await reader.leave()
        seats = door._seats
        assert seats._free == FEW.seats and not (seats._taken or seats._begun or seats._begun_from or seats._waiting)

    run(story)


class Socket:
    """A client of the websocket that stops reading after it was accepted."""

    def __init__(self, token: str, since: int, *, takes_close: bool = True) -> None:
        self._takes_close = takes_close
        self.stuck, self.closed = asyncio.Event(), asyncio.get_running_loop().create_future()
        self.scope = {
            "type": "websocket", "path": "/ws/changes/", "raw_path": b"/ws/changes/", "client": ("10.0.0.1", 1),
            "query_string": f"since={since}".encode(), "headers": [(b"authorization", f"Bearer {token}".encode())],
        }  # fmt: skip
        self._connects = True

    async def receive(self) -> dict[str, Any]:
        if self._connects:
            self._connects = False
            return {"type": "websocket.connect"}
        return {"type": "websocket.disconnect", "code": await asyncio.shield(self.closed)}

    async def send(self, message: dict[str, Any]) -> None:
        if message["type"] == "websocket.close":
            self.closed.set_result(message["code"])
            if not self._takes_close:
                await asyncio.Event().wait()
        elif message["type"] == "websocket.send":
            self.stuck.set()
            await asyncio.Event().wait()


@pytest.mark.django_db(transaction=True)
def test_a_socket_that_does_not_read_what_it_missed_keeps_no_seat_and_is_closed(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, since = token_of("mal"), journal.head()
    monkeypatch.setattr(consumers, "_open", Counter())
    with transaction.atomic():
        events.announce([journal.Change("Job", "default", "llama", "u", journal.Action.MODIFIED)], timezone.now())

    hearts = list[Any]()
    monkeypatch.setattr(consumers.ChangesConsumer, "_beat", lambda socket: hearts.append(socket) or asyncio.sleep(0))

    async def story() -> None:
        limited = Limited(consumers.ChangesConsumer.as_asgi(), FEW, rest.sort, rest.refusal)
        patient = Socket(token, since)
        task = asyncio.ensure_future(limited(patient.scope, patient.receive, patient.send))
        await patient.stuck.wait()
        while limited._seats._free < FEW.seats:
            await asyncio.sleep(0.01)
        assert not task.done(), "it still waits for its client"
        task.cancel()
        monkeypatch.setattr(consumers, "RESUME_S", 0.01)
        monkeypatch.setattr(consumers, "CLOSE_S", 0.01, raising=False)
        for takes_close in (True, False):
            late = Socket(token, since, takes_close=takes_close)
            await limited(late.scope, late.receive, late.send)
            assert late.closed.result() == consumers.AWAY
        await asyncio.gather(task, return_exceptions=True)
        assert not hearts, "none beats for a socket that is closed"
        assert not +consumers._open, "neither is counted any more"

    run(story)


@pytest.mark.django_db(transaction=True)
def test_a_watch_that_is_behind_is_read_no_faster_than_its_reader_and_delays_no_other(maps: list[str]) -> None:
    """A watch from an old version used to read all of the journal into memory, while no other watch got its changes."""
    tokens = {name: token_of(name) for name in ("mal", "bob")}
    rows = list(Dependent.objects.values_list("name", "uid"))

    def change(pairs: list[tuple[str, Any]]) -> None:
        told = [journal.Change("ConfigMap", "default", name, str(uid), journal.Action.MODIFIED) for name, uid in pairs]
        with transaction.atomic():
            journal.append(told, timezone.now())

    change(rows[:1])
    since = journal.head()
    change(rows)

    async def story() -> None:
        door = Limited(application(), FEW, kube.sort, kube.refusal)
        behind = Reader(door, tokens["mal"], CONFIG_MAPS, b"watch=true&resourceVersion=%d" % since, is_slow=True)
        await behind.stuck.wait()
        innocent = Reader(door, tokens["bob"], CONFIG_MAPS, b"watch=true&resourceVersion=%d" % journal_head)
        while not innocent.code:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(change, rows[7:8])
        while rows[7][0].encode() not in innocent.body:
            await asyncio.sleep(0.01)
        behind.goes_on.set()
        while behind.body.count(b"\n") < COUNT + 1:
            await asyncio.sleep(0.01)
        lines = [json.loads(line) for line in behind.body.splitlines()]
        assert [line["object"]["metadata"]["name"] for line in lines] == [*(name for name, _ in rows), rows[7][0]]
        assert max(part.count(b"\n") for part in behind.parts) <= 200
        for reader in (behind, innocent):
            await reader.leave()

    journal_head = journal.head()
    run(story)


@pytest.mark.parametrize("lent", [False, True])
def test_a_request_that_is_given_up_in_the_moment_in_which_a_seat_becomes_free_takes_none(lent: bool) -> None:
    async def story() -> None:
        seats = Seats(Limits(at_once=1, seats=1, reserved=0))
        reads, has_read, sits, ends = (asyncio.Event() for _ in range(4))

        async def hostile() -> None:
            async with seats.one("mal", "of mal") as seat:
                seat.lend()
                reads.set()
                await has_read.wait()
                await seat.take_again()

        async def innocent() -> None:
            async with seats.one("bob", "of bob"):
                sits.set()
                await ends.wait()

        async def come(request: Callable[[], Any]) -> None:
            tasks[request] = asyncio.ensure_future(request())
            await {hostile: reads, innocent: sits}[request].wait()

        tasks: dict[Callable[[], Any], asyncio.Future[None]] = {}
        if lent:
            await come(hostile)
        await come(innocent)
        has_read.set()
        if not lent:
            tasks[hostile] = asyncio.ensure_future(hostile())
        while not seats._waiting:
            await asyncio.sleep(0)
        ends.set()
        tasks[hostile].cancel()
        results = await asyncio.gather(tasks[innocent], tasks[hostile], return_exceptions=True)
        assert results[0] is None and isinstance(results[1], asyncio.CancelledError)
        assert seats._free == 1 and not (seats._taken or seats._begun or seats._waiting or seats._waiting_from)

    run(story)


@pytest.mark.parametrize("stuck", ["http.response.start", "http.response.body"])
def test_a_short_answer_that_is_not_read_keeps_no_seat_either(stuck: str) -> None:
    """Behind a page that was not read, on the same connection, not even the head of the next answer is taken."""

    async def story() -> None:
        async def door(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"short"})

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def not_read(message: dict[str, Any]) -> None:
            if message["type"] == stuck:
                is_stuck.set()
                await reads.wait()

        async def read(message: dict[str, Any]) -> None:
            assert message

        limited = Limited(door, Limits(at_once=1, seats=1, reserved=0), rest.sort, rest.refusal)
        reads, is_stuck = asyncio.Event(), asyncio.Event()
        scope = {"type": "http", "method": "GET", "path": "/api/v1/jobs/", "raw_path": b"", "query_string": b""}
        slow = {**scope, "headers": [], "client": ("10.0.0.1", 1)}
        hostile = asyncio.ensure_future(limited(slow, receive, not_read))
        await is_stuck.wait()
        async with asyncio.timeout(20):
            await limited({**slow, "client": ("10.0.0.2", 1)}, receive, read)
        assert not hostile.done()
        reads.set()
        await hostile
        assert limited._seats._free == 1 and not limited._seats._taken and not limited._seats._begun

    run(story)


STEPS = st.lists(
    st.tuples(st.integers(0, 11), st.sampled_from(["come", "read", "go on", "leave", "cancel"]), st.booleans()),
    max_size=60,
)
"""Of which request, what it does, and whether the loop has its turns before the next step."""


@given(STEPS)
def test_a_lent_seat_is_free_for_others_and_its_own_user_s_all_the_same(steps: list[tuple[int, str, bool]]) -> None:
    async def story() -> None:
        seats, most = Seats(FEW), 0
        orders: dict[int, asyncio.Queue[str]] = {}
        tasks: dict[int, asyncio.Task[None]] = {}

        async def request(number: int) -> None:
            async with seats.one(number % 3, f"address {number % 3}") as seat:
                while (order := await orders[number].get()) != "leave":
                    if order == "read":
                        seat.lend()
                    else:
                        await seat.take_again()

        for number, step, settles in steps:
            if step == "come" and number not in tasks:
                orders[number], tasks[number] = asyncio.Queue(), asyncio.ensure_future(request(number))
            elif step == "cancel" and number in tasks:
                tasks[number].cancel()
            elif number in tasks:
                orders[number].put_nowait(step)
            for _ in range(3 if settles else 0):
                await asyncio.sleep(0)
            most = max(most, *seats._begun.values(), 0)
            assert seats._free == FEW.seats - seats._taken.total() >= 0
            assert all(seats._taken[caller] <= seats._begun[caller] for caller in range(3))
        assert most <= FEW.at_once
        for queue in orders.values():
            queue.put_nowait("leave")
        await asyncio.wait_for(asyncio.gather(*tasks.values(), return_exceptions=True), 60)
        assert seats._free == FEW.seats and not (seats._taken or seats._begun or seats._begun_from)
        assert not (seats._waiting or seats._waiting_from)

    asyncio.run(story())
