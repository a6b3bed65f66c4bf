"""What lasts, a watch or a stream, begins on a seat as any request and leaves it then; no user takes all of an address."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fleet.api.http import limits as rest
from fleet.kubeapi import limits as kube
from fleet.limits.callers import USERS
from fleet.limits.limited import Limited
from fleet.limits.seats import leave_seat
from fleet.limits.settings import Limits

JOBS = "/apis/kubeflow.org/v1/pytorchjobs"
LASTING = {
    "a watch": (JOBS, b"watch=true", kube, "http"),
    "a request to a cluster": ("/apis/cluster.karmada.io/v1alpha1/clusters/north/proxy/api", b"", kube, "http"),
    "a log": ("/api/v1/namespaces/a/pods/b/log", b"", kube, "http"),
    "exec": ("/api/v1/namespaces/a/pods/b/exec", b"", kube, "http"),
    "a log of REST": ("/api/v1/jobs/a/logs/", b"", rest, "http"),
    "a websocket": ("/ws/changes/", b"", rest, "websocket"),
}
FEW = Limits(at_once=2, seats=8, reserved=0, waiting=9)


def scope(
    token: str, path: str = JOBS, query: bytes = b"", kind: str = "http", address: str = "10.0.0.1"
) -> dict[str, Any]:
    headers = [(b"authorization", f"Bearer {token}".encode())]
    return {
        "type": kind, "method": "GET", "path": path, "raw_path": path.encode(), "query_string": query,
        "headers": headers, "client": (address, 1),
    }  # fmt: skip


class Door:
    """Begins its answers when it is let, and then they last."""

    def __init__(self) -> None:
        self.begins, self.ends, self.inside, self.lasting = asyncio.Event(), asyncio.Event(), 0, 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.inside += 1
        await self.begins.wait()
        await asyncio.to_thread(leave_seat)
        self.lasting += 1
        await self.ends.wait()


async def receive() -> dict[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}


async def send(message: dict[str, Any]) -> None:
    """Nobody reads it."""


async def settled() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


def run(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(story())  # type: ignore[arg-type]


@pytest.mark.parametrize("what", LASTING)
def test_what_lasts_begins_on_a_seat_and_leaves_it(what: str) -> None:
    """Without a seat, two hundred watches that begin at once would use all threads of the process."""
    path, query, door, kind = LASTING[what]

    async def story() -> None:
        inner = Door()
        limited = Limited(inner, FEW, door.sort, door.refusal)
        tasks = [asyncio.create_task(limited(scope("a", path, query, kind), receive, send)) for _ in range(6)]
        await settled()
        assert inner.inside == 2
        inner.begins.set()
        async with asyncio.timeout(60):
            while inner.lasting < 6:
                await asyncio.sleep(0)
        assert limited._seats._free == FEW.seats and not limited._seats._taken
        inner.ends.set()
        await asyncio.gather(*tasks)
        assert limited._seats._free == FEW.seats, "left once, not twice"

    run(story)


def test_users_behind_one_load_balancer_take_no_seats_from_each_other() -> None:
    """Its address is that of all of them, and bounds only those whose credentials have not been checked."""

    async def story() -> None:
        inner = Door()
        limited = Limited(inner, FEW, kube.sort, kube.refusal)
        for user in ("mal", "bob", "eve"):
            USERS.learn(f"Bearer {user}".encode(), user)
        names = ["mal"] * 8 + ["made-up-1", "made-up-2", "made-up-3", "made-up-4"] + ["bob", "eve"]
        tasks = [asyncio.create_task(limited(scope(name), receive, send)) for name in names]
        await settled()
        assert inner.inside == 2 + 3 + 1 + 1, "of one user, of the address, and the others"
        inner.begins.set()
        inner.ends.set()
        await asyncio.gather(*tasks)
        assert limited._seats._free == FEW.seats and not limited._seats._waiting

    run(story)
