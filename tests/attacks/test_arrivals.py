"""New connections begin in turns of the addresses they come from, however many one address has waiting."""

import asyncio
import socket
from contextlib import ExitStack, closing
from typing import Any

import pytest

from deploy.config import http
from deploy.config.http import Arrivals

FLOOD = 60


def connected(stack: ExitStack, port: int, source: str, first: bytes = b"") -> socket.socket:
    line = stack.enter_context(closing(socket.create_connection(("127.0.0.1", port), 60, source_address=(source, 0))))
    line.sendall(first)
    return line


def order_of(arrived: list[tuple[str, bytes]], *, speaks_within_s: float | None) -> list[str]:
    """The addresses of the connections, as they begin: they all wait before the first has its turn."""

    async def story() -> list[str]:
        begun: list[str] = []

        async def begin(line: socket.socket) -> None:
            begun.append(line.getpeername()[0])
            line.close()

        sockets = http.listening("127.0.0.1", 0)
        with ExitStack() as stack:
            for source, first in arrived:
                connected(stack, sockets[0].getsockname()[1], source, first)
            server: Any = Arrivals(sockets, begin, speaks_within_s=speaks_within_s)
            async with asyncio.timeout(60):
                while len(begun) < sum(1 for _, first in arrived if first or speaks_within_s is None):
                    await asyncio.sleep(0.001)
            server.close()
            await server.wait_closed()
        return begun

    return asyncio.run(story())


def test_it_listens_where_it_can_although_the_kernel_lacks_a_family(monkeypatch: pytest.MonkeyPatch) -> None:
    unknown, known = (9999, 1, 6, "", ("127.0.0.1", 0)), (socket.AF_INET, 1, 6, "", ("127.0.0.1", 0))
    monkeypatch.setattr(http.socket, "getaddrinfo", lambda *args, **options: [unknown, known])
    (listening,) = http.listening("", 0)
    with closing(listening):
        assert listening.family == socket.AF_INET
    monkeypatch.setattr(http.socket, "getaddrinfo", lambda *args, **options: [unknown])
    with pytest.raises(OSError):
        http.listening("", 0)


def test_one_address_waits_for_no_flood_of_another() -> None:
    flood, other = [("127.0.0.1", b"x")] * FLOOD, [("127.0.0.2", b"x")]
    for speaks_within_s in (None, 60.0):
        begun = order_of(flood + other, speaks_within_s=speaks_within_s)
        assert sorted(begun) == sorted(each for each, _ in flood + other)
        assert begun.index("127.0.0.2") <= 2 * http.AT_ONCE, begun


def test_connections_that_say_nothing_keep_nobody_waiting_and_are_closed() -> None:
    silent = [("127.0.0.1", b"")] * FLOOD
    assert order_of([*silent, ("127.0.0.1", b"x")], speaks_within_s=60) == ["127.0.0.1"]

    async def story() -> bytes:
        async def begin(line: socket.socket) -> None:
            raise AssertionError("it said nothing")

        sockets = http.listening("127.0.0.1", 0)
        with ExitStack() as stack:
            line = connected(stack, sockets[0].getsockname()[1], "127.0.0.1")
            server = Arrivals(sockets, begin, speaks_within_s=0.01)
            rest = await asyncio.to_thread(line.recv, 1)
            server.close()
            return rest

    assert asyncio.run(story()) == b""
