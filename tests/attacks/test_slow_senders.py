"""A request that never ends is hung up on, at both doors; one that is slow for a reason of this side's is not."""

import asyncio
import socket
from contextlib import closing
from typing import Any

import pytest
from uvicorn import Config, Server

from deploy.config.http import Protocol

HEAD_S, BODY_S = 0.3, 0.6
PATIENCE_S = 60
"""Far beyond the bounds: what is not hung up on fails here."""
ENDLESS = {
    "nothing at all": b"",
    "a head": b"GET /livez HTTP/1.1\r\nHost: a\r\n",
    "empty lines": b"\r\n\r\n",
    "a body": b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{",
    "a chunk": b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
}


class Whole:
    """Answers what has come whole; may take its time before it reads."""

    def __init__(self) -> None:
        self.cut, self.before_s = 0, 0.0

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        await asyncio.sleep(self.before_s)
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.cut += 1
                return
            size, more = size + len(message["body"]), message["more_body"]
        body = str(size).encode()
        head = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": body})


async def sent(port: int, *parts: bytes, every_s: float = 0.0) -> bytes:
    """Everything that is answered until the other side hangs up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def write() -> None:
        for part in parts:
            writer.write(part)
            await asyncio.sleep(every_s)

    writing = asyncio.create_task(write())
    try:
        return await asyncio.wait_for(reader.read(), PATIENCE_S)
    finally:
        writing.cancel()
        writer.close()


def serving(application: Whole, ask: Any) -> Any:
    async def run() -> Any:
        config = Config(application, http=Protocol, lifespan="off", log_level="warning", timeout_keep_alive=PATIENCE_S)
        server = Server(config)
        with closing(socket.create_server(("127.0.0.1", 0))) as door:
            running = asyncio.create_task(server.serve(sockets=[door]))
            while not server.started:
                await asyncio.sleep(0.01)
            try:
                return await ask(door.getsockname()[1])
            finally:
                server.should_exit = True
                await running

    return asyncio.run(run())


@pytest.fixture(autouse=True)
def soon(settings: Any) -> None:
    settings.CONVOY_HEAD_S, settings.CONVOY_BODY_S = HEAD_S, BODY_S


@pytest.mark.parametrize("begun", ENDLESS.values(), ids=ENDLESS)
def test_it_hangs_up_on_a_request_without_an_end(begun: bytes) -> None:
    application = Whole()
    answer = serving(application, lambda port: sent(port, begun))
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert application.cut == (b"POST" in begun)


def test_bytes_that_trickle_win_no_time() -> None:
    head = [b"GET / HTTP/1.1\r\n", *(b"a: b\r\n" for _ in range(200))]
    assert b" 408 " in serving(Whole(), lambda port: sent(port, *head, every_s=HEAD_S / 3))
    body = [b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200\r\n\r\n", *(b"x" for _ in range(199))]
    assert b" 408 " in serving(Whole(), lambda port: sent(port, *body, every_s=HEAD_S / 3))


def test_the_second_request_of_a_connection_has_its_own_time() -> None:
    first = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    answer = serving(Whole(), lambda port: sent(port, first, first, b"GET / HT", every_s=HEAD_S * 1.5))
    assert answer.count(b" 200 ") == 2 and answer.count(b" 408 ") == 1


@pytest.mark.parametrize("moment", [0.5, 0.99, 1.0, 1.01, 3.0])
def test_it_does_not_hang_up_on_a_body_it_is_slow_to_read_itself(moment: float) -> None:
    """Also where it begins to read just as the sender's time would be over."""
    application, size = Whole(), 3_000_000
    application.before_s = BODY_S * moment
    head = f"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {size}\r\n\r\n".encode()
    answer = serving(application, lambda port: sent(port, head, b"x" * size))
    assert answer.endswith(str(size).encode()) and application.cut == 0


def test_it_does_not_hang_up_while_it_answers() -> None:
    application = Whole()
    application.before_s = BODY_S * 3
    asked = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    assert b" 200 " in serving(application, lambda port: sent(port, asked))
