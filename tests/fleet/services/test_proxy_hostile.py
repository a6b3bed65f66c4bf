"""What no client sends, sent to the way through the fleet over a bare socket: always an answer, never a 5xx."""

import random
import socket
import ssl

import pytest

from tests.support.members import PROXY  # noqa: F401  (fixtures)

pytestmark = pytest.mark.django_db(transaction=True)
ROOT = PROXY.format("north").encode()
PODS = b"/api/v1/pods"
UPGRADE = (
    b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)


@pytest.fixture
def send(ada):
    token = ada.file.read_text().partition("token: ")[2].split()[0].encode()
    port = int(ada.file.read_text().partition("127.0.0.1:")[2].split("/")[0])
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    def ask(path: bytes, headers: bytes = b"", method: bytes = b"GET", body: bytes = b"") -> int:
        plain = socket.create_connection(("127.0.0.1", port), timeout=60)
        with context.wrap_socket(plain, server_hostname="localhost") as door:
            head = b"%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n" % (method, path, token)
            door.sendall(head + headers + b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            return int(door.recv(4096).split()[1])

    return ask


@pytest.mark.parametrize(
    ("path", "headers", "codes"),
    [
        (PODS + b"?a=\xc3\xa9", b"", {200, 400}),
        (PODS + b"?a=%00", b"", {400}),
        (PODS + b"?labelSelector=a%3Db%0a", b"", {200, 400}),
        (PODS, b"Accept: \xe9\xff\r\n", {200, 406}),
        (b"/api/v1/p%c3%a9", b"", {404}),
        (b"/@evil.example/", b"", {404}),
        (b"/http://evil.example/", b"", {422}),
        (b"//evil.example/version", b"", {404}),
        (b"", b"", {200, 404}),
        (b"/api/v1/namespaces/team/pods/a/exec?command=ls", UPGRADE, {403}),
        (b"/../../../../../../../api", b"", {422}),
    ],
    ids=repr,
)
def test_it_answers(send, path, headers, codes):
    assert send(ROOT + path, headers) in codes


@pytest.mark.parametrize("method", [b"OPTIONS", b"HEAD", b"TRACE", b"PROPFIND"])
def test_it_passes_on_only_the_methods_it_knows(send, method):
    assert send(ROOT + b"/version", method=method) in (405, 422, 400)


def test_it_takes_no_other_spelling_of_a_cluster(send):
    assert send(ROOT.replace(b"north", b"no%72th") + b"/version") == 400
    assert send(ROOT.replace(b"north", b"..") + b"/version") == 404


def test_it_survives_noise(send):
    rng = random.Random(1)
    noise = b"abc/.%2eF0?&=;:@~\\|^`'\"{}[]+*,!$()"
    for _ in range(60):
        text = bytes(rng.choice(noise) for _ in range(rng.randint(1, 25)))
        assert send(ROOT + b"/" + text) < 500, text
