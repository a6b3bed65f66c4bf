"""A member that vanished without a word is noticed by the connection itself, long before a quiet watch ends."""

import contextlib
import itertools
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from fleet.member.client import MemberClient
from fleet.member.errors import MemberAway
from simulator.apiserver.server import ApiServer


@pytest.fixture(scope="module")
def north(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    server = ApiServer("north", tmp_path_factory.mktemp("north"))
    server.start()
    yield server
    server.stop()


def test_its_connections_are_kept_alive_and_given_up_within_half_a_minute(north: ApiServer) -> None:
    client = MemberClient(north.access())
    client.get_text("/readyz")
    pool = client._pool.connection_from_url(north.url)
    connection = pool._get_conn()
    sock = connection.sock
    assert sock is not None
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    idle, every, tries = (
        sock.getsockopt(socket.IPPROTO_TCP, option)
        for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
    )
    assert idle + every * tries <= 30
    connection.close()
    client.close()


def _at_line(number: int, act: Callable[[], None], *files: str) -> Any:
    """A trace function that acts before so many lines of code in these files have run."""
    lines = itertools.count(1)

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if Path(frame.f_code.co_filename).name not in files:
            return None
        if event == "line" and next(lines) == number:
            act()
        return trace

    return trace


@pytest.mark.parametrize("line", range(1, 13))
def test_it_is_closed_while_another_thread_opens_a_stream(north: ApiServer, line: int) -> None:
    client, watched = MemberClient(north.access()), threading.Event()

    def watch() -> None:
        with contextlib.suppress(MemberAway):
            for _ in client.stream_lines("/api/v1/pods", {"watch": "true"}, read_timeout_s=5, opened=watched.set):
                pass

    def watch_beside() -> None:
        beside = threading.Thread(target=watch, daemon=True)
        beside.start()
        beside.join(0.5)

    threading.Thread(target=watch, daemon=True).start()
    assert watched.wait(60)
    former = sys.gettrace()
    sys.settrace(_at_line(line, watch_beside, "client.py", "_weakrefset.py"))
    try:
        client.close()
    finally:
        sys.settrace(former)
