"""Whether open watches may go on, which one look answers for all of them."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from fleet.kube.server import open_watches
from fleet.kube.server.open_watches import OpenWatch, OpenWatches
from fleet.kube.server.request import Request

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
