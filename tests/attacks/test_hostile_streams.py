"""Streams into pods and requests through the proxy, from a tenant who may: whatever is sent is answered with what is wrong with
it, and reaches no member in another shape than it was looked at."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from django.utils import timezone

from deploy.config.kube import application
from fleet.models import AuditEntry, Pod
from fleet.services.authorization import access
from fleet.services.members import member_clients
from simulator.controller_manager import Shape
from simulator.member import SimulatedMember
from tests.support import books
from tests.support.people import person

pytestmark = pytest.mark.django_db(transaction=True)
PODS = "/api/v1/namespaces/vision/pods"
PROXY = "/apis/cluster.karmada.io/v1alpha1/clusters/north/proxy"
UPGRADE = [
    (b"connection", b"Upgrade"), (b"upgrade", b"websocket"), (b"sec-websocket-key", b"MDEyMzQ1Njc4OWFiY2RlZg=="),
    (b"sec-websocket-version", b"13"), (b"sec-websocket-protocol", b"v5.channel.k8s.io"),
]  # fmt: skip
QUERIES = {
    "more fields than anybody means": b"&".join([b"command=a"] * 1500),
    "bytes that are no text": b"command=\xff\xfe",
    "half a character": b"command=%ed%a0%80",
    "a space": b"command=a b",
    "a line end": b"command=a\r\nX-Remote-User: root",
    "another request": b"command=a HTTP/1.1\r\n\r\nDELETE /api/v1/namespaces/x HTTP/1.1",
    "a zero byte": b"command=%00",
    "a bare zero byte": b"command=\x00",
    "a fragment": b"command=a#/../../x",
}
HEADERS = {
    "a key with a line end": (b"sec-websocket-key", b"a\r\nX: y"),
    "a version that is none": (b"sec-websocket-version", b"\xff"),
    "no protocol": (b"sec-websocket-protocol", b", ,\xff"),
    "a million protocols": (b"sec-websocket-protocol", b"v5.channel.k8s.io," * 3000),
}


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


REFUSED = (400, 404)
"""Here, or by the member, which has no such pod."""


@pytest.mark.parametrize("part", ["exec", "attach", "portforward"])
@pytest.mark.parametrize("query", QUERIES)
def test_a_hostile_query_for_a_stream_is_refused(token: str, part: str, query: str) -> None:
    status, said = ask(token, f"{PODS}/p/{part}", QUERIES[query], UPGRADE)
    assert status in REFUSED, said
    assert not AuditEntry.objects.filter(outcome="failed").exists()


@pytest.mark.parametrize("header", HEADERS)
def test_a_hostile_header_for_a_stream_is_refused(token: str, header: str) -> None:
    name, value = HEADERS[header]
    headers = [(key, value if key == name else each) for key, each in UPGRADE]
    status, said = ask(token, f"{PODS}/p/exec", b"command=a", headers)
    assert status in REFUSED, said


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("path", [f"{PROXY}{PODS}", f"{PODS}/p/log"])
def test_a_hostile_query_to_a_member_is_refused(token: str, path: str, query: str) -> None:
    status, said = ask(token, path, QUERIES[query], [])
    assert status in (200, *REFUSED), said
