"""A member that vanished without a word is noticed by the connection itself, long before a quiet watch ends."""

import socket
from pathlib import Path

from fleet.member.client import MemberClient
from simulator.apiserver.server import ApiServer


def test_its_connections_are_kept_alive_and_given_up_within_half_a_minute(tmp_path: Path) -> None:
    north = ApiServer("north", tmp_path)
    north.start()
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
    north.stop()
