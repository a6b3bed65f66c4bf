"""No caller delays another's request: seats are shared out fairly, and nobody takes one before its request has come whole."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from deploy.config.kube import application
from fleet.kubeapi import limits as kube
from fleet.limits.buckets import TooMany
from fleet.limits.callers import Users, _digest, caller_of
from fleet.limits.limited import Limited
from fleet.limits.seats import Bodies, Seats
from fleet.limits.settings import Limits
from fleet.services.authorization import access
from tests.support.people import person

REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
FEW = Limits(at_once=3, seats=6, reserved=2, waiting=4, body=10, bodies=40)


def run(story: Callable[[], Awaitable[Any]]) -> Any:
    return asyncio.run(story())  # type: ignore[arg-type]


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


class Callers:
    """Takes seats in the background, and knows who sits in which order."""

    def __init__(self, limits: Limits = FEW) -> None:
        self.seats, self.seated = Seats(limits), []
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._leave: dict[str, asyncio.Event] = {}

    async def come(self, *names: str) -> None:
        for name in names:
            self._leave[name] = asyncio.Event()
            self._tasks[name] = asyncio.create_task(self._sit(name))
            await turns()

    async def _sit(self, name: str) -> None:
        async with self.seats.one(name[0], f"address of {name[0]}"):
            self.seated.append(name)
            await self._leave[name].wait()

    async def leave(self, name: str) -> None:
        self._leave[name].set()
        await self._tasks[name]
        await turns()

    async def give_up(self, name: str) -> None:
        self._tasks[name].cancel()
        await asyncio.gather(self._tasks[name], return_exceptions=True)
        await turns()

    async def all_leave(self) -> None:
        for event in self._leave.values():
            event.set()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)


def test_busy_callers_leave_seats_for_those_who_have_none() -> None:
    async def story() -> list[str]:
        callers = Callers()
        await callers.come("a1", "a2", "a3", "a4", "b1", "b2", "b3", "c1", "d1")
        seated = list(callers.seated)
        await callers.all_leave()
        return seated

    assert run(story) == ["a1", "a2", "a3", "b1", "c1", "d1"]


def test_a_free_seat_goes_to_the_caller_with_the_fewest() -> None:
    async def story() -> list[str]:
        callers = Callers()
        await callers.come("a1", "a2", "a3", "b1", "c1", "d1", "a4", "b2", "e1")
        await callers.leave("a1")
        seated = list(callers.seated)
        await callers.all_leave()
        return seated[6:]

    assert run(story) == ["e1"]


def test_everybody_is_seated_in_the_end_and_nothing_is_remembered() -> None:
    async def story() -> Seats:
        callers = Callers()
        names = [f"{caller}{number}" for number in range(5) for caller in "abcdef"]
        await callers.come(*names)
        await callers.give_up("a4")
        await callers.give_up("b0")
        await callers.all_leave()
        assert set(names) - set(callers.seated) == {"a4"}
        return callers.seats

    seats = run(story)
    assert seats._free == FEW.seats
    assert not (seats._taken or seats._begun or seats._begun_from or seats._waiting or seats._waiting_from)


def test_a_caller_beyond_its_queue_is_refused() -> None:
    async def story() -> None:
        callers = Callers()
        await callers.come(*(f"a{number}" for number in range(7)))
        with pytest.raises(TooMany):
            await callers.seats._sit("a", "address of a")
        await callers.all_leave()

    run(story)


def chunks(*parts: bytes, whole: bool = True) -> Callable[[], Awaitable[dict[str, Any]]]:
    messages: list[dict[str, Any]] = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    messages[-1]["more_body"] = not whole
    messages.append({"type": "http.disconnect"})

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    return receive


async def body(bodies: Bodies, receive: Any, address: str = "x") -> bytes | None:
    async with bodies.whole(address, receive) as again:
        if again is None:
            return None
        found, more = b"", True
        while more:
            message = await again()
            found, more = found + message["body"], message["more_body"]
        assert (await again())["type"] == "http.disconnect"
        return found


def test_a_body_is_given_again_as_it_came() -> None:
    assert asyncio.run(body(Bodies(FEW), chunks(b"abc", b"", b"defg"))) == b"abcdefg"


def test_a_body_that_breaks_off_is_nothing() -> None:
    assert asyncio.run(body(Bodies(FEW), chunks(b"abc", whole=False))) is None


def test_a_body_that_is_too_long_is_refused_and_not_kept() -> None:
    bodies = Bodies(FEW)
    with pytest.raises(TooMany) as refused:
        asyncio.run(body(bodies, chunks(b"12345678", *[b"1234"] * 1000)))
    assert refused.value.status == 413 and not bodies._kept


def test_one_address_cannot_fill_the_memory_with_bodies() -> None:
    async def story() -> None:
        bodies = Bodies(FEW)
        async with bodies.whole("x", chunks(b"1234567890")):
            with pytest.raises(TooMany):
                await body(bodies, chunks(b"1"))
            assert await body(bodies, chunks(b"1"), "y") == b"1"
        assert not bodies._kept

    run(story)


class Hears:
    def __init__(self) -> None:
        self.code = 0

    async def __call__(self, message: dict[str, Any]) -> None:
        self.code = self.code or message.get("status", 0)


def scope(token: str, address: str, method: str = "GET", path: str = "/api/v1/namespaces") -> dict[str, Any]:
    headers = [(b"authorization", f"Bearer {token}".encode()), (b"content-type", b"application/yaml")]
    return {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"",
        "headers": headers, "client": (address, 1),
    }  # fmt: skip


def test_a_slow_sender_takes_no_seat() -> None:
    async def story() -> int:
        async def inner(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})

        async def never() -> dict[str, Any]:
            await asyncio.Event().wait()
            return {}

        limited, heard = Limited(inner, Limits(at_once=1, seats=1, reserved=0), kube.sort, kube.refusal), Hears()
        slow = [asyncio.create_task(limited(scope("a", "x", "POST"), never, Hears())) for _ in range(50)]
        await turns()
        await limited(scope("a", "x"), chunks(b""), heard)
        for each in slow:
            each.cancel()
        await asyncio.gather(*slow, return_exceptions=True)
        return heard.code

    assert run(story) == 200


@pytest.mark.django_db(transaction=True)
def test_the_request_of_another_is_answered_before_the_flood_of_a_hostile_tenant() -> None:
    """It has a seat at once (`test_busy_callers_leave_seats_for_those_who_have_none`), and so does not come last."""
    tokens = [
        access.mint(person(name, ("viewer", "default")), "t", life=None, now=timezone.now())[1]
        for name in ("mal", "eve", "bob")
    ]
    hostile = b"spec: [" + b"a, " * 40_000 + b"b]"

    async def story() -> list[str]:
        limited, answered = Limited(application(), Limits(), kube.sort, kube.refusal), list[str]()

        async def ask(name: str, asked: dict[str, Any], sent: bytes) -> None:
            heard = Hears()
            await limited(asked, chunks(sent), heard)
            assert heard.code in (200, 201, 400), heard.code
            answered.append(name)

        flood = [
            asyncio.create_task(ask("flood", scope(token, address, "POST", REVIEW), hostile))
            for _ in range(30)
            for token, address in ((tokens[0], "10.0.0.1"), (tokens[1], "10.0.0.2"))
        ]
        while not answered:
            await asyncio.sleep(0)
        await ask("bob", scope(tokens[2], "10.0.0.3"), b"")
        await asyncio.gather(*flood)
        return answered

    answers = run(story)
    assert answers.count("flood") == 60 and answers[-1] != "bob"


@pytest.mark.django_db(transaction=True)
def test_a_user_s_watches_are_counted_whatever_the_token(settings: Any) -> None:
    settings.CONVOY_LIMITS = Limits(watches=2)
    user = person("mal", ("viewer", "default"))
    tokens = [access.mint(user, str(number), life=None, now=timezone.now())[1] for number in range(3)]
    other = access.mint(person("bob", ("viewer", "default")), "t", life=None, now=timezone.now())[1]

    async def story() -> list[int]:
        door, codes = application(), []

        async def never() -> dict[str, Any]:
            await asyncio.Event().wait()
            return {}

        async def watch(token: str) -> Any:
            sent, heard = chunks(b""), Hears()
            first = await sent()

            async def receive() -> dict[str, Any]:
                nonlocal first
                found, first = first, None
                return found or await never()

            asked = {**scope(token, "10.0.0.1"), "query_string": b"watch=true"}
            task = asyncio.create_task(door(asked, receive, heard))
            while not heard.code:
                await asyncio.sleep(0)
            codes.append(heard.code)
            return task

        tasks = [await watch(token) for token in (*tokens, other)]
        tasks[0].cancel()
        await asyncio.gather(tasks[0], return_exceptions=True)
        tasks.append(await watch(tokens[2]))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return codes

    assert run(story) == [200, 200, 429, 200, 200]


def test_all_tokens_of_a_user_are_one_caller() -> None:
    users = Users(kept=3)
    for token in (b"Bearer a", b"Bearer b"):
        users.learn(token, 7)
    assert users.find(_digest(b"Bearer a")) == users.find(_digest(b"Bearer b")) != users.find(_digest(b"Bearer c"))
    for number in range(5):
        users.learn(b"Bearer %d" % number, 8)
    assert users.find(_digest(b"Bearer a")) is None, "forgotten, not kept for ever"


@pytest.mark.django_db(transaction=True)
def test_a_user_s_requests_are_counted_whatever_the_token() -> None:
    """Once a door has checked them: a token that was never seen counts by itself."""
    user = person("mal", ("viewer", "default"))
    tokens = [access.mint(user, str(number), life=None, now=timezone.now())[1] for number in range(3)]
    other = access.mint(person("bob", ("viewer", "default")), "t", life=None, now=timezone.now())[1]

    async def story() -> list[int]:
        limited, codes = Limited(application(), Limits(per_s=1.0), kube.sort, kube.refusal), []
        for token in (*tokens, *tokens, *tokens, other):
            heard = Hears()
            await limited(scope(token, "10.0.0.1"), chunks(b""), heard)
            codes.append(heard.code)
        return codes

    assert 429 not in run(story)[:3]
    assert len({caller_of(scope(token, "x")) for token in tokens}) == 1
    assert caller_of(scope(other, "x"))[0] != caller_of(scope(tokens[0], "x"))[0]


@pytest.mark.parametrize(("processes", "at_once"), [(1, 8), (2, 4), (3, 3), (8, 1), (100, 1)])
def test_processes_share_what_one_would_allow(processes: int, at_once: int) -> None:
    part = Limits(processes=processes).part
    assert (part.at_once, part.part) == (at_once, part)
    assert part.per_s * processes == pytest.approx(500) and part.watches * processes >= 200


ARRIVALS = st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=120)


@given(ARRIVALS)
def test_a_single_hostile_caller_never_makes_another_wait(arrivals: list[tuple[int, bool]]) -> None:
    """Counted in seats: whatever it sends, from however many addresses, and whichever of its requests have ended."""

    async def story() -> bool:
        seats, inside = Seats(Limits()), list[asyncio.Task[None]]()

        async def request(address: int) -> None:
            async with seats.one("mal", address):
                await asyncio.Event().wait()

        for address, leaves in arrivals:
            if leaves and inside:
                inside.pop(address % len(inside)).cancel()
            else:
                inside.append(asyncio.ensure_future(request(address)))
            await asyncio.sleep(0)
        await turns()
        entered = asyncio.ensure_future(_enter(seats, "bob", "of bob"))
        await turns()
        is_served = entered.done()
        for task in (*inside, entered):
            task.cancel()
        await asyncio.gather(*inside, entered, return_exceptions=True)
        return is_served

    assert run(story)


@given(st.integers(2, 40))
def test_many_hostile_callers_make_another_wait_for_one_request_at_most(number: int) -> None:
    """And for one of each that came before it and has no seat either."""

    async def story() -> tuple[int, int]:
        callers = Callers(Limits())
        names = [f"{chr(0x4E00 + caller)}{request}" for caller in range(number) for request in range(3)]
        await callers.come(*names)
        ahead = number - len({name[0] for name in callers.seated})
        await callers.come("z0")
        ended = 0
        for name in list(callers.seated):
            if "z0" in callers.seated:
                break
            await callers.leave(name)
            ended += 1
        await callers.all_leave()
        return ended, ahead

    ended, ahead = run(story)
    assert ended <= ahead + 1


async def _enter(seats: Seats, caller: str, address: str) -> None:
    async with seats.one(caller, address):
        return
