"""The Kubernetes-style door's TLS server and callers that never end what they begin: each is hung up on, others are served."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from uvicorn import Config, Server

from deploy.config.http import Protocol
from fleet.kube import pki
from tests.support.members import eventually

HEAD_S, BODY_S, SEND_S = 1.5, 2.0, 2.0
"""Not so short that a busy machine lets one pass between two steps of a caller that means well."""
PATIENCE_S = 60
REQUEST = b"GET /quick HTTP/1.1\r\nHost: a\r\n\r\n"


class Application:
    """Answers at once; below /endless it writes for as long as its reader is there."""

    def __init__(self) -> None:
        self.open = self.ended = 0

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        while (message := await receive()).get("more_body"):
            continue
        if message["type"] == "http.disconnect":
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        if scope["path"] == "/endless":
            self.open += 1
            gone = asyncio.ensure_future(receive())
            while not gone.done():
                await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
                await asyncio.sleep(0)
            self.ended += 1
            return
        await send({"type": "http.response.body", "body": b"here"})


@pytest.fixture
def application() -> Application:
    return Application()


@pytest.fixture
def port(application: Application, settings: Any, tmp_path: Path) -> Iterator[int]:
    settings.CONVOY_HEAD_S, settings.CONVOY_BODY_S, settings.CONVOY_SEND_S = HEAD_S, BODY_S, SEND_S
    files = pki.ensure(tmp_path / "pki", timezone.now(), [])
    config = Config(
        application, http=Protocol, loop="deploy.config.http:loop", lifespan="off", log_level="critical",
        timeout_keep_alive=PATIENCE_S, ssl_certfile=files.certificate, ssl_keyfile=str(files.key),
    )  # fmt: skip
    server = Server(config)
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        eventually(lambda: server.started)
        yield listening.getsockname()[1]
        server.should_exit = server.force_exit = True
        thread.join(PATIENCE_S)


def plain(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)


def secure(port: int) -> ssl.SSLSocket:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(plain(port))


def rest_of(connection: socket.socket) -> bytes:
    """Everything until the other side hangs up."""
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except (ConnectionResetError, ssl.SSLError):
        pass
    return b"".join(parts)


def is_served(port: int) -> bool:
    with secure(port) as connection:
        connection.sendall(REQUEST)
        return b"200 OK" in connection.recv(65536)


def hello() -> bytes:
    """The first flight of a handshake."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


@pytest.mark.parametrize("sent", [b"", b"\x16", hello()[:50], hello()], ids=["nothing", "a byte", "a half", "a hello"])
def test_a_handshake_that_is_never_finished_ends_and_delays_nobody(port: int, sent: bytes) -> None:
    stalled = [plain(port) for _ in range(50)]
    for connection in stalled:
        connection.sendall(sent)
    assert is_served(port)
    for connection in stalled:
        rest_of(connection)
        connection.close()


def dribbled(port: int, head: bytes, piece: bytes) -> bytes:
    """The answer to a request of which a piece comes every now and then, well within the bound each."""
    with secure(port) as connection:
        connection.sendall(head)
        hung_up = threading.Event()

        def send() -> None:
            while not hung_up.wait(HEAD_S / 4):
                try:
                    connection.sendall(piece)
                except OSError:
                    return

        sending = threading.Thread(target=send, daemon=True)
        sending.start()
        try:
            return rest_of(connection)
        finally:
            hung_up.set()
            sending.join(60)


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b"GET /quick HTTP/1.1\r\n", b"a: b\r\n"),
        (b"POST /quick HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n", b"x"),
        (b"POST /quick HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    ],
    ids=["a head", "a body", "chunks"],
)
def test_bytes_that_trickle_win_no_time(port: int, head: bytes, piece: bytes) -> None:
    assert b" 408 " in dribbled(port, head, piece)
    assert is_served(port)


@pytest.mark.parametrize("number", [1, 20])
def test_a_reader_that_never_reads_is_hung_up_on(port: int, application: Application, number: int) -> None:
    readers = []
    for _ in range(number):
        readers.append(secure(port))
        readers[-1].sendall(REQUEST.replace(b"quick", b"endless"))
    eventually(lambda: application.open == number, PATIENCE_S)
    assert is_served(port)
    eventually(lambda: application.ended == number, PATIENCE_S)
    for reader in readers:
        reader.close()


def test_a_reader_that_is_merely_slow_is_not(port: int, application: Application) -> None:
    with secure(port) as reader:
        reader.sendall(REQUEST.replace(b"quick", b"endless"))
        clock = threading.Event()
        for _ in range(5):
            clock.wait(SEND_S / 3)
            size = 0
            while size < 16 << 20:  # more than all buffers hold, so that writing goes on
                size += len(reader.recv(1 << 20))
        assert application.ended == 0
