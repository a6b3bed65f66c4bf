"""However many ask whether the product is ready, it looks once a second, and each of them is told what was found."""

import asyncio
import json
import threading
from typing import Any

import pytest

from deploy.config.asgi import application
from fleet.api.http import readiness
from tests.support.asgi_door import Reader

ASKED = 40


async def inner(scope: Any, receive: Any, send: Any) -> None:
    raise AssertionError("it was let through")


def asked(*, times: int, fails: bool = False) -> tuple[int, list[Reader]]:
    """How often it looked when all asked at once, and once more."""
    looks, go = [0], threading.Event()

    def look() -> tuple[int, bytes]:
        looks[0] += 1
        go.wait(60)
        if fails and looks[0] == 1:
            raise RuntimeError
        return 503, b"{}"

    async def story() -> list[Reader]:
        door = readiness.before(inner, look)
        readers = [Reader(door, "never-given", readiness.PATH) for _ in range(times)]
        await asyncio.sleep(0)
        go.set()
        await asyncio.gather(*(each.task for each in readers), return_exceptions=True)
        again = Reader(door, "never-given", readiness.PATH)
        await again.task
        return [*readers, again]

    readers = asyncio.run(story())
    return looks[0], readers


def test_a_flood_of_probes_costs_one_look() -> None:
    looks, readers = asked(times=ASKED)
    assert looks == 1 and {(each.code, bytes(each.body)) for each in readers} == {(503, b"{}")}


def test_a_look_that_raised_is_made_again() -> None:
    looks, readers = asked(times=1, fails=True)
    assert looks == 2 and readers[-1].code == 503


def test_it_looks_again_when_the_last_look_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "FRESH_S", 0.0)
    assert asked(times=ASKED)[0] == 2


@pytest.mark.django_db(transaction=True)
def test_it_answers_whatever_host_is_asked() -> None:
    async def story() -> Reader:
        reader = Reader(application, "never-given", "/readyz", headers=((b"host", b"elsewhere.example"),))
        await reader.task
        return reader

    answer = asyncio.run(story())
    assert answer.code == 503 and json.loads(answer.body)["checks"]["database"] == {"ok": True}


def test_only_reads_look_and_anything_else_is_refused_in_front_of_django() -> None:
    async def story() -> Reader:
        reader = Reader(application, "never-given", readiness.PATH, method="POST")
        await reader.task
        return reader

    answer = asyncio.run(story())
    assert answer.code == 405 and not answer.body
