"""Whether open watches may go on, which one look answers for all of them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import ExitStack, nullcontext
from datetime import UTC, datetime
from typing import Any

import pytest

from fleet.kube.server import open_watches
from fleet.kube.server.open_watches import OpenWatch, OpenWatches
from fleet.kube.server.request import Request
from fleet.kube.server.selection import Selection
from fleet.kube.server.watching import Changes, Event, Frame, Opening, Watch, WatchOptions

ASKED = Request("GET", "/", {}, {})


class Looks:
    """Answers a look as it is listed, and then that nobody lost anything; knows how many watches each was about."""

    def __init__(self, *answers: Callable[[Sequence[OpenWatch]], Collection[OpenWatch] | None]) -> None:
        self.about, self.answers = list[int](), list(answers)

    async def look(self, watches: Sequence[OpenWatch]) -> Collection[OpenWatch] | None:
        self.about.append(len(watches))
        return self.answers.pop(0)(watches) if self.answers else ()


async def after(looks: Looks, number: int, targets: Sequence[Any] = ("a", "b")) -> list[bool]:
    """Which of the watches may go on after so many looks."""
    watches = OpenWatches(looks.look)
    with ExitStack() as stack:
        opened = [stack.enter_context(watches.one(ASKED, each, None)) for each in targets]
        async with asyncio.timeout(60):
            while len(looks.about) < number:
                await asyncio.sleep(0.001)
        return [may_go_on() for may_go_on in opened]


@pytest.fixture(autouse=True)
def looked_at_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_watches, "LOOK_S", 0.002)


def test_one_look_is_about_all_of_them_and_ends_those_it_names() -> None:
    looks = Looks(lambda watches: [each for each in watches if each.target == "b"])
    assert asyncio.run(after(looks, 2)) == [True, False]
    assert looks.about[:2] == [2, 1]


def test_they_go_on_while_a_look_fails_now_and_then_and_end_when_it_fails_again_and_again() -> None:
    def fails(watches: Sequence[OpenWatch]) -> None:
        return None

    now_and_then = [fails, fails, lambda _: (), fails, fails, lambda _: ()]
    assert asyncio.run(after(Looks(*now_and_then), 7)) == [True, True]
    assert asyncio.run(after(Looks(fails, fails, fails), 4)) == [False, False]


def test_they_end_where_a_look_breaks() -> None:
    def breaks(watches: Sequence[OpenWatch]) -> None:
        raise ValueError("not foreseen")

    async def story() -> list[bool]:
        watches = OpenWatches(Looks(breaks).look)
        with watches.one(ASKED, "a", None) as may_go_on:
            assert watches._task is not None
            await asyncio.wait({watches._task}, timeout=60)
            assert isinstance(watches._task.exception(), ValueError)
            with watches.one(ASKED, "b", None) as later:  # is looked at again
                return [may_go_on(), later()]

    assert asyncio.run(story()) == [False, True]


class Missed(Changes):
    """Changes that a watch has to send before it has caught up; none come after these."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces, self.is_closed = pieces, False

    def missed(self) -> AsyncIterator[bytes]:
        return _each(self.pieces)

    def ended(self) -> bool:
        return True

    def error(self) -> None:
        return None

    async def take(self) -> tuple[list[Event], int]:
        return [], 1

    async def wait(self, seconds: float) -> None: ...

    def close(self) -> None:
        self.is_closed = True


async def _each(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
    for each in pieces:
        yield each


async def read(first: Sequence[bytes], missed: Missed, rights: Sequence[bool], timeout_s: float) -> list[bytes]:
    """What the watch sends whose right is asked for after each piece; an end of the answers is an end of the test."""

    async def begin(options: WatchOptions, frame: Frame) -> Opening:
        return Opening(1, _each(first), missed)

    answers = iter(rights)
    watch = Watch(
        WatchOptions(None, None, Selection(), since=1),  # type: ignore[arg-type]  # no object is written here
        bookmarks=False,
        timeout_s=timeout_s,
        include=None,
        clock=lambda: datetime.now(UTC),
        right=lambda: nullcontext(lambda: next(answers)),
    )
    return [lines async for lines in watch.lines(begin)]


def test_a_watch_that_begins_is_over_with_the_piece_in_which_its_right_or_its_time_ends() -> None:
    missed = Missed(b"3", b"4")
    assert asyncio.run(read([b"1", b"2"], missed, [True] * 4, 60)) == [b"1", b"2", b"3", b"4"]
    assert asyncio.run(read([b"1", b"2"], missed, [False], 60)) == [b"1"]
    assert asyncio.run(read([b"1", b"2"], missed, [True, True, False], 60)) == [b"1", b"2", b"3"]
    assert missed.is_closed
    assert asyncio.run(read([b"1", b"2"], missed, [True], 0)) == [b"1"]
