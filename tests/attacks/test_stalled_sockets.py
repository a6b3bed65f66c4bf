"""A client of the websocket that stops reading, over real connections: others hear on, and it is hung up on."""

import json
import socket
import time
from collections import Counter

import pytest
from django.db import transaction
from django.utils import timezone
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from fleet import consumers
from fleet.changes import events, journal
from tests.support.asgi_door import token_of
from tests.support.web import served

pytestmark = pytest.mark.django_db(transaction=True)

MANY = 3000


def listen(port: int, name: str, *, takes_little: bool = False) -> ClientConnection:
    """One that takes little keeps few bytes that it has not read."""
    line = socket.socket()
    if takes_little:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    line.connect(("127.0.0.1", port))
    listening = connect(
        f"ws://127.0.0.1:{port}/ws/changes/",
        sock=line,
        compression=None,
        max_queue=1 if takes_little else None,
        ping_interval=None,
        origin=f"http://127.0.0.1:{port}",
        additional_headers={"Authorization": f"Bearer {token_of(name)}"},
    )
    assert json.loads(listening.recv(timeout=60))["type"] == "ping"
    return listening


def change(*names: str) -> None:
    told = [journal.Change("Job", "default", name, "u", journal.Action.MODIFIED) for name in names]
    with transaction.atomic():
        events.announce(told, timezone.now())


@pytest.fixture
def quick(transactional_db, monkeypatch):
    monkeypatch.setattr(consumers, "_open", Counter())
    monkeypatch.setattr(consumers, "FOLLOW_S", 0.01)
    monkeypatch.setattr(consumers, "TAKE_S", 0.2, raising=False)


def wait_until_none_is_left() -> None:
    deadline = time.monotonic() + 30
    while +consumers._open:
        assert time.monotonic() < deadline, "a socket stays for ever whose client reads nothing"
        time.sleep(0.01)


def test_others_hear_on_beside_one_that_reads_nothing_and_it_is_told_to_come_again(quick):
    with (
        served(unsent=4096) as port,
        listen(port, "mal", takes_little=True) as stalled,
        listen(port, "bob") as other,
    ):
        change(*(f"{number:0250}" for number in range(MANY)), "last")
        while json.loads(other.recv(timeout=30)).get("name") != "last":
            pass
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                stalled.recv(timeout=10)
    assert closed.value.rcvd.code == 1013


@pytest.mark.parametrize("how", [{}, {"ws_ping_interval": 0.2, "ws_ping_timeout": 0.2}], ids=["unread", "unanswered"])
def test_one_that_never_reads_again_is_hung_up_on(quick, settings, how):
    settings.CONVOY_SEND_S = 60.0 if how else 0.5
    with served(unsent=4096, **how) as port:
        stalled = listen(port, "mal", takes_little=True)
        change(*(f"{number:0250}" for number in range(MANY)))
        wait_until_none_is_left()
        stalled.socket.close()
