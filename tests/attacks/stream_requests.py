"""Raw requests for streams into pods, as no client would write them."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from django.utils import timezone

from deploy.config.kube import application
from fleet.models import Pod
from fleet.services.authorization import access
from fleet.services.members import member_clients
from simulator.controller_manager import Shape
from simulator.member import SimulatedMember
from tests.support import books
from tests.support.people import person

UPGRADE = [
    (b"connection", b"Upgrade"), (b"upgrade", b"websocket"), (b"sec-websocket-key", b"MDEyMzQ1Njc4OWFiY2RlZg=="),
    (b"sec-websocket-version", b"13"), (b"sec-websocket-protocol", b"v5.channel.k8s.io"),
]  # fmt: skip


@pytest.fixture(scope="module")
def member(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedMember]:
    made = SimulatedMember("north", tmp_path_factory.mktemp("member"), Shape((), {}))
    made.start()
    yield made
    made.stop()


@pytest.fixture
def token(transactional_db: None, member: SimulatedMember) -> str:
    cluster = books.a_cluster("north")
    cluster.access = member_clients.stored(member.access())
    cluster.save()
    about = {"namespace": "vision", "attempt": 1, "phase": "Running", "node": "n", "created_at": timezone.now()}
    Pod.objects.create(cluster=cluster, name="p", uid="1", job_uid="0" * 32, role="master", **about)
    return access.mint(person("eve", ("editor", "vision")), "t", life=None, now=timezone.now())[1]


def ask(token: str, path: str, query: bytes, headers: list[tuple[bytes, bytes]]) -> tuple[int, bytes]:
    async def exchange() -> tuple[int, bytes]:
        door, heard, sent = application(), [], [{"type": "http.request", "body": b"", "more_body": False}]

        async def receive() -> dict[str, Any]:
            return sent.pop() if sent else await asyncio.Event().wait() or {}

        async def send(message: dict[str, Any]) -> None:
            heard.append(message)

        head = [(b"authorization", b"Bearer " + token.encode()), *headers]
        scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "headers": head}
        await door({**scope, "query_string": query, "client": ("127.0.0.1", 1)}, receive, send)
        return heard[0]["status"], b"".join(each.get("body", b"") for each in heard)

    return asyncio.run(exchange())
