"""A pod that prints nothing yet: its log is open all the same, for no longer than its reader may read and wants to."""

import asyncio

import pytest

from fleet.core.open_places import OpenPlaces
from fleet.errors import Unavailable
from fleet.member.streaming.following import Following
from jobs.api.inspect import logs

ADA = "ada"


class Way:
    """To a member that begins its answer when ``begins`` is set, or refuses at once."""

    def __init__(self, error=None):
        self.begins, self.error, self.was_cancelled = asyncio.Event(), error, False

    async def open(self):
        if self.error:
            raise self.error
        try:
            await self.begins.wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        return Answer()


class Answer:
    def __init__(self):
        self.left, self.is_closed = [b"one\n", b"tw", b""], False

    async def read(self):
        return self.left.pop(0)

    def close(self):
        self.is_closed = True


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(logs, "REFUSED_WITHIN_S", 0.01)
    monkeypatch.setattr(logs, "LOOK_AGAIN_S", 0.05)
    monkeypatch.setattr(logs, "following", OpenPlaces())
    assert logs.following.take(ADA, of_one=100, in_all=100)


def test_it_is_open_before_its_first_byte_and_passes_on_what_comes():
    async def story():
        way = Way()
        opening, loop = await logs._opening(way)
        assert not opening.done()
        body = logs.Followed(opening, loop, ADA, lambda: True)
        loop.call_later(0.2, way.begins.set)
        chunks = [chunk async for chunk in body.chunks()]
        await asyncio.sleep(0)
        return chunks, opening.result().is_closed

    assert asyncio.run(story()) == ([b"one\n", b"tw"], True)
    assert logs.following.total() == 0


def test_it_ends_while_it_is_silent_when_it_may_no_longer_be_read():
    async def story():
        way, answers = Way(), iter([True, False])
        opening, loop = await logs._opening(way)
        body = logs.Followed(opening, loop, ADA, lambda: next(answers))
        chunks = [chunk async for chunk in body.chunks()]
        await asyncio.wait({opening})
        return chunks, way.was_cancelled

    assert asyncio.run(story()) == ([], True)
    assert logs.following.total() == 0


def test_what_is_refused_soon_is_raised_and_what_is_refused_late_is_the_last_line():
    async def story():
        with pytest.raises(Unavailable):
            await logs._opening(Way(Unavailable("away")))
        loop = asyncio.get_running_loop()
        late = loop.create_future()
        loop.call_later(0.1, late.set_exception, Unavailable("north is away"))
        return [chunk async for chunk in logs.Followed(late, loop, ADA, lambda: True).chunks()]

    assert asyncio.run(story()) == [b"convoy: north is away\n"]


def test_a_member_has_little_time_to_be_asked_and_long_to_begin():
    class Slow:
        status, headers = 200, {}

        async def head(self):
            await asyncio.sleep(0.3)

        def chunks(self, silent_s):
            return iter(())

    class Connections:
        async def request(self, target, headers):
            return Slow()

    class Line:
        connections, headers, server = Connections(), {}, "https://north"

    answer = asyncio.run(Following.open(Line(), "/log", timeout_s=0.1, idle_s=60))
    assert answer.status == 200
