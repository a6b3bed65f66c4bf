"""What one caller may take: so much a second, so many at once, so many watches; others are not delayed by it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest

from fleet.api.http import limits as rest
from fleet.kubeapi import limits as kube
from fleet.limits.buckets import Buckets
from fleet.limits.limited import Limited
from fleet.limits.settings import Limits

JOBS = "/apis/kubeflow.org/v1/pytorchjobs"
FEW = Limits(per_s=1000, at_once=2, watches=3, all_watches=5, sign_ins_per_minute=4, hashing=1, waiting=2)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def scope(
    path: str = JOBS, *, token: str = "", query: str = "", method: str = "GET", address: str = "10.0.0.1", **more: Any
) -> dict:
    headers = [(b"authorization", f"Bearer {token}".encode())] if token else []
    return {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": query.encode(),
        "headers": headers, "client": (address, 1), **more,
    }  # fmt: skip


class Inner:
    """Answers when it is let; knows how many it answers at once."""

    def __init__(self) -> None:
        self.go, self.inside, self.most = asyncio.Event(), 0, 0

    async def __call__(self, scope: dict, receive: Any, send: Callable[[dict], Awaitable[None]]) -> None:
        self.inside += 1
        self.most = max(self.most, self.inside)
        await self.go.wait()
        self.inside -= 1
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


async def ask(door: Limited, asked: dict) -> tuple[int, dict[bytes, bytes]]:
    heard: list[dict] = []

    sent = [{"type": "http.request"}]

    async def receive() -> dict:
        return sent.pop() if sent else {"type": "http.disconnect"}

    async def send(message: dict) -> None:
        heard.append(message)

    await door(asked, receive, send)
    return heard[0]["status"], dict(heard[0]["headers"])


def codes(asked: Iterable[dict], limits: Limits = FEW, door: Any = kube) -> tuple[list[int], int]:
    """Of all at once, in their order; and how many were answered at once."""

    async def run() -> tuple[list[int], int]:
        inner = Inner()
        limited = Limited(inner, limits, door.sort, door.refusal)
        tasks = [asyncio.create_task(ask(limited, each)) for each in asked]
        for _ in range(50):
            await asyncio.sleep(0)
        inner.go.set()
        return [code for code, _ in await asyncio.gather(*tasks)], inner.most

    return asyncio.run(run())


def test_a_bucket_fills_again_with_time() -> None:
    clock = Clock()
    buckets = Buckets(2.0, 4.0, clock)
    assert [buckets.take("a") for _ in range(4)] == [0.0] * 4
    assert buckets.take("a") == 0.5 and buckets.take("b") == 0.0
    clock.now = 0.5
    assert buckets.take("a") == 0.0 and buckets.take("a") > 0


def test_it_remembers_only_so_many_callers() -> None:
    buckets = Buckets(1.0, 1.0, Clock())
    for number in range(20_000):
        buckets.take(number)
    assert len(buckets._levels) <= 10_000


def test_it_answers_so_many_of_one_caller_at_once_and_refuses_beyond_a_queue() -> None:
    told, most = codes(scope(token="a") for _ in range(8))
    assert sorted(told) == [200] * 4 + [429] * 4 and most == 2


def test_another_caller_is_answered_beside_one_who_floods() -> None:
    told, _ = codes([*(scope(token="a") for _ in range(50)), scope(token="b", address="10.0.0.2")])
    assert told[-1] == 200 and told.count(429) == 46


def test_made_up_credentials_do_not_help() -> None:
    told, most = codes(scope(token=str(i)) for i in range(100))
    assert most == 3 and told.count(200) == 3 + FEW.waiting * 4


def test_it_counts_watches_of_one_caller_and_of_all() -> None:
    told, _ = codes(scope(token="a", query="watch=true") for _ in range(5))
    assert told == [200] * 3 + [429] * 2
    told, _ = codes(scope(token=str(i), query="watch=1") for i in range(7))
    assert told == [200] * 5 + [429] * 2


def test_it_limits_signing_in_by_address_and_checks_one_password_at_once() -> None:
    asked = [scope("/api/v1/session/", method="POST", address=f"10.0.0.{i // 6}") for i in range(12)]
    told, most = codes(asked, door=rest)
    assert most == 1 and told.count(200) == 3
    told, _ = codes((scope("/admin/login/", method="POST") for _ in range(9)), Limits(sign_ins_per_minute=4), rest)
    assert told == [200] * 4 + [429] * 5


@pytest.mark.parametrize("door", [kube, rest])
@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (scope(query="labelSelector=" + "a" * 40_000), 414),
        (scope("/" + "a" * 40_000), 414),
        (scope(headers=[(b"x", b"y" * 70_000)]), 431),
        (scope(headers=[(b"cookie", b"sessionid=\xff;;=\x00")] * 5), 200),
        (scope(query="&".join(["watch"] * 10_000)), 414),
        (scope(query="&".join(["watch"] * 500)), 200),
    ],
)
def test_it_refuses_long_heads(door: Any, asked: dict, code: int) -> None:
    assert codes([asked], Limits(), door)[0] == [code]


@pytest.mark.parametrize("door", [kube, rest])
def test_it_says_when_to_come_again(door: Any) -> None:
    async def run() -> tuple[int, dict[bytes, bytes]]:
        inner = Inner()
        inner.go.set()
        limited = Limited(inner, Limits(per_s=0.01), door.sort, door.refusal)
        return await ask(limited, scope())

    code, headers = asyncio.run(run())
    assert code == 429 and headers[b"retry-after"].isdigit() and b"json" in headers[b"content-type"]
