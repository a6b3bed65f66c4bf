"""The wire contract of kubeai 0.1.0, against servers that answer as it does, and as nothing should."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from supervisor import kubeai

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def told(answer: Answer, *, times: int = 1) -> list[bool]:
    async def play() -> list[bool]:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            return [await kubeai.notify("127.0.0.1", port) for _ in range(times)]

    return asyncio.run(play())


def answering(data: bytes, heard: list[bytes] | None = None) -> Answer:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        if heard is not None:
            heard.append(request)
        writer.write(data)
        await writer.drain()
        writer.close()

    return answer


def test_it_asks_for_exactly_stop_and_takes_two_bytes_for_heard():
    heard: list[bytes] = []
    assert told(answering(b"ok", heard)) == [True]
    assert heard == [b"GET /stop HTTP/1.0\r\n\r\n"]


@pytest.mark.parametrize("answer", [b"", b"o", b"HTTP/1.1 200 OK\r\n\r\nok", b"no"])
def test_it_takes_no_other_answer_for_heard(answer):
    assert told(answering(answer)) == [False]


def test_it_is_not_held_up_by_one_that_says_nothing(monkeypatch):
    monkeypatch.setattr(kubeai, "TIMEOUT_S", 0.05)

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    assert told(silent) == [False]


def test_it_is_not_heard_where_nobody_listens():
    async def nowhere() -> bool:
        server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        return await kubeai.notify("127.0.0.1", port)

    assert not asyncio.run(nowhere())
    assert not asyncio.run(kubeai.notify(""))
