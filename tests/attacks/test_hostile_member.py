"""A member whose API server lies: its answers do not end, are not what they should be, or lead elsewhere."""

import gzip
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from django.utils import timezone

from fleet.kube import pki
from fleet.member import deadlines, reading
from fleet.member.client import Access, MemberClient
from fleet.member.errors import MemberAway, MemberError

PATH = "/api/v1/pods"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
Say = Callable[[ssl.SSLSocket], None]


def saying(*parts: bytes, head: bytes = HEAD) -> Say:
    body = b"".join(parts)
    return lambda line: line.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)


def endless(piece: bytes, head: bytes = HEAD) -> Say:
    def say(line: ssl.SSLSocket) -> None:
        line.sendall(head + b"\r\n")
        while True:
            line.sendall(piece)

    return say


class Liar:
    """Says the same to every request of a connection."""

    def __init__(self, folder: Path, say: Say) -> None:
        files = pki.ensure(folder / "pki", timezone.now(), [])
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(files.certificate, files.key)
        self._say, self._socket = say, socket.create_server(("127.0.0.1", 0))
        self.asked: list[str] = []
        threading.Thread(target=self._serve, daemon=True).start()
        server = f"https://127.0.0.1:{self._socket.getsockname()[1]}"
        self.client = MemberClient(Access(server, ca_pem=files.authority.read_text(), token="secret"), timeout_s=20.0)

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                line, _ = self._socket.accept()
                threading.Thread(target=self._talk, args=(line,), daemon=True).start()

    def _talk(self, line: socket.socket) -> None:
        with suppress(OSError), self._context.wrap_socket(line, server_side=True) as spoken:
            while (heard := spoken.recv(65536)).endswith(b"\r\n\r\n"):
                self.asked.append(heard.decode("latin-1"))
                self._say(spoken)
            # The other side hung up.

    def close(self) -> None:
        self.client.close()
        self._socket.close()


@pytest.fixture
def lying(tmp_path: Path) -> Iterator[Callable[[Say], Liar]]:
    liars: list[Liar] = []

    def lie(say: Say) -> Liar:
        liars.append(Liar(tmp_path, say))
        return liars[-1]

    yield lie
    for each in liars:
        each.close()


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    from fleet.member import client

    monkeypatch.setattr(client, "LONGEST_ANSWER", 1_000_000)
    monkeypatch.setattr(reading, "LONGEST_ERROR", 100_000)


def test_an_answer_without_an_end_is_given_up(lying: Any) -> None:
    with pytest.raises(MemberAway, match="longer than 1000000 bytes"):
        lying(endless(b"x" * 65536)).client.get(PATH)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_refusal_without_an_end_is_given_up(lying: Any, streamed: bool) -> None:
    client = lying(endless(b"x" * 65536, HEAD.replace(b"200 OK", b"500 No"))).client
    with pytest.raises(MemberAway):
        list(client.watch(PATH, resource_version="1")) if streamed else client.get(PATH)


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
TRICKLES = {
    "a body": (HEAD + b"\r\n", b" "),
    "a head": (HEAD + b"X: ", b"a"),
    "heads before the head": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "the size of a chunk": (CHUNKED + b"1;", b"a"),
    "what follows the last chunk": (CHUNKED + b"2\r\n{}\r\n0\r\n", b"a: b\r\n"),
}
LATE = {
    "an answer": lambda client: client.get(PATH),
    "a list, within its caller's time": lambda client: listed_within(client, 0.4),
    "the answer of an exporter": lambda client: client.get_bounded(PATH, most=10_000, within_s=0.4),
}


def listed_within(client: MemberClient, seconds: float) -> None:
    client._timeout_s = 60.0
    with deadlines.within(seconds):
        client.list(PATH)


def trickling(first: bytes, piece: bytes) -> Say:
    def say(line: ssl.SSLSocket) -> None:
        line.sendall(first)
        while True:
            line.sendall(piece)
            sleep(0.02)

    return say


@pytest.mark.parametrize("asked", LATE)
@pytest.mark.parametrize("trickle", TRICKLES)
def test_what_comes_byte_by_byte_is_given_up_in_time(
    lying: Any, monkeypatch: pytest.MonkeyPatch, trickle: str, asked: str
) -> None:
    from fleet.member import client

    monkeypatch.setattr(client, "LONGEST_ANSWER_S", 0.2)
    liar = lying(trickling(*TRICKLES[trickle]))
    liar.client._timeout_s, errors = 0.2, []

    def ask() -> None:
        try:
            LATE[asked](liar.client)
        except MemberAway as e:
            errors.append(e)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(5)
    assert errors and not asking.is_alive()


def test_the_head_of_a_stream_that_comes_byte_by_byte_is_given_up_but_not_a_slow_stream(lying: Any) -> None:
    hostile = lying(trickling(*TRICKLES["a head"])).client
    hostile._timeout_s = 0.2
    with pytest.raises(MemberAway):
        next(hostile.stream_lines(PATH, read_timeout_s=0.2))
    slow = lying(trickling(HEAD + b"\r\n", b"x\n")).client
    slow._timeout_s = 0.2
    assert list(islice(slow.stream_lines(PATH, read_timeout_s=0.2), 30)) == [b"x"] * 30


def test_a_compressed_answer_is_not_unfolded(lying: Any) -> None:
    bomb = gzip.compress(b" " * 50_000_000)
    client = lying(saying(bomb, head=HEAD + b"Content-Encoding: gzip\r\n")).client
    with pytest.raises(MemberAway, match="is not JSON"):
        client.get(PATH)


@pytest.mark.parametrize("there", ["http://169.254.169.254/latest/meta-data/", "https://127.0.0.1:1/", "//localhost/"])
@pytest.mark.parametrize("code", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(lying: Any, there: str, code: int) -> None:
    head = b"HTTP/1.1 %d Moved\r\nLocation: %s\r\n" % (code, there.encode())
    liar = lying(saying(b"", head=head))
    with pytest.raises(MemberError) as caught:
        liar.client.get(PATH)
    assert caught.value.status == code and len(liar.asked) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"null", b"1e999", b"<html>", b"\xff\xfe", b"[" * 200_000, b'{"a":' * 100_000,
        json.dumps({"items": []}).encode()[:-1],
    ],
)  # fmt: skip
@pytest.mark.parametrize("code", [200, 409, 422, 500])
def test_what_is_no_object_is_an_answer_that_is_away_or_refused(lying: Any, body: bytes, code: int) -> None:
    client = lying(saying(body, head=HEAD.replace(b"200", b"%d" % code))).client
    with pytest.raises(MemberError) as caught:
        client.get(PATH)
    assert len(caught.value.message) < 300


@pytest.mark.parametrize(
    "event",
    [
        b"1", b"[]", b"{}", b'{"type": "ADDED"}', b'{"type": [], "object": {}}', b'{"type": "ADDED", "object": []}',
        b'{"type": "ERROR", "object": "x"}', b'{"type": "ERROR", "object": {"code": "x"}}', b"[" * 200_000,
        b'{"type": "ERROR", "object": {"code": 1e999}}', b'{"type": "ERROR", "object": {"code": -1}}', b"\xff",
    ],
)  # fmt: skip
def test_what_is_no_event_ends_the_watch(lying: Any, event: bytes) -> None:
    with pytest.raises(MemberError):
        list(lying(saying(event, b"\n")).client.watch(PATH, resource_version="1"))


@pytest.mark.parametrize("metadata", [[], "x", 1, {"continue": 1}, {"continue": {}}, {"continue": ["x"]}, None])
def test_a_page_that_does_not_say_where_the_next_begins_is_the_last(lying: Any, metadata: Any) -> None:
    liar = lying(saying(json.dumps({"metadata": metadata, "items": []}).encode()))
    assert len(list(liar.client.pages(PATH))) == 1 == len(liar.asked)


@pytest.mark.parametrize("items", [5, True, "abc", {"a": 1}, [1], [{}, None], [[]]])
def test_a_page_whose_items_are_no_objects_is_an_error_of_the_member(lying: Any, items: Any) -> None:
    with pytest.raises(MemberAway, match="are not objects"):
        lying(saying(json.dumps({"items": items}).encode())).client.list(PATH)


def test_a_list_without_items_is_empty(lying: Any) -> None:
    assert lying(saying(b'{"items": null}')).client.list(PATH)["items"] == []


def test_a_list_of_pages_without_an_end_is_given_up(lying: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from fleet.member import client

    monkeypatch.setattr(client, "LONGEST_LIST_S", 0.0)
    with pytest.raises(MemberAway, match="does not end"):
        list(lying(saying(b'{"metadata": {"continue": "x"}}')).client.pages(PATH))


def test_what_it_says_of_an_error_is_cut_off(lying: Any) -> None:
    status = json.dumps({"kind": "Status", "message": "x" * 90_000, "reason": "y" * 90_000}).encode()
    with pytest.raises(MemberError) as caught:
        lying(saying(status, head=HEAD.replace(b"200", b"422"))).client.get(PATH)
    assert len(caught.value.message) < 5000 and len(caught.value.reason) < 5000


def test_one_that_is_honest_is_asked_again_over_the_same_connection(lying: Any) -> None:
    liar = lying(saying(b'{"kind": "PodList"}'))
    assert [liar.client.get(PATH)["kind"] for _ in range(3)] == ["PodList"] * 3
    assert liar.client._pool.connection_from_url(liar.client.access.server).num_connections == 1
