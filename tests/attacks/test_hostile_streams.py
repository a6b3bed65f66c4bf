"""Streams into pods and requests through the proxy, from a tenant who may: whatever is sent is answered with what is wrong with
it, and reaches no member in another shape than it was looked at."""

import pytest

from fleet.models import AuditEntry
from tests.attacks.stream_requests import UPGRADE, ask, member, token

__all__ = ["member", "token"]

pytestmark = pytest.mark.django_db(transaction=True)
PODS = "/api/v1/namespaces/vision/pods"
PROXY = "/apis/cluster.karmada.io/v1alpha1/clusters/north/proxy"
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
