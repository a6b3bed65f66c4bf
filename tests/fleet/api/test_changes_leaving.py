"""Sockets of changes that end, and when: whatever was done then, none is followed, counted or looked at any more."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels import consumer
from django.db import transaction
from django.utils import timezone

from fleet import consumers
from fleet.changes import events, journal
from tests.support.asgi_door import token_of

pytestmark = pytest.mark.django_db(transaction=True)


class Gone(OSError):
    """As a server tells that the client has left."""


class Client:
    """It leaves with the first message of this type, and is told nothing more."""

    def __init__(self, token: str, *, leaves_at: str = "", since: str = "") -> None:
        self.said = asyncio.Queue[dict[str, Any]]()
        self.said.put_nowait({"type": "websocket.connect"})
        self.heard = asyncio.Queue[dict[str, Any]]()
        self.leaves_at, self.is_gone = leaves_at, False
        self.scope = {
            "type": "websocket", "path": "/ws/changes/", "client": ("10.0.0.1", 1), "query_string": since.encode(),
            "headers": [(b"authorization", f"Bearer {token}".encode())],
        }  # fmt: skip

    def leave(self) -> None:
        self.is_gone = True
        self.said.put_nowait({"type": "websocket.disconnect", "code": 1006})

    async def send(self, message: dict[str, Any]) -> None:
        if self.leaves_at and self.leaves_at in str(message):
            self.leave()
        if self.is_gone:
            raise Gone
        self.heard.put_nowait(message)

    async def until(self, text: str) -> None:
        while text not in str(await self.heard.get()):
            pass


def change(name: str) -> None:
    with transaction.atomic():
        events.announce([journal.Change("Job", "default", name, "u", journal.Action.MODIFIED)], timezone.now())


@asynccontextmanager
async def a_socket(client: Client) -> AsyncIterator["asyncio.Task[None]"]:
    """Ends by itself, or when it is cancelled; afterwards nothing of it may be left."""
    sockets: list[consumers.ChangesConsumer] = []

    class Kept(consumers.ChangesConsumer):
        def __init__(self) -> None:
            super().__init__()
            sockets.append(self)

    task = asyncio.ensure_future(Kept.as_asgi()(client.scope, client.said.get, client.send))
    async with asyncio.timeout(60):
        yield task
        await asyncio.wait([task])
    [socket], tailer = sockets, consumers._tailer()
    assert (tailer.sockets, tailer.task, +consumers._open) == (set(), None, Counter())
    await asyncio.sleep(0)
    assert socket.heart is None or socket.heart.done()


@pytest.fixture
def play(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[str], Awaitable[None]]], None]:
    monkeypatch.setattr(consumers, "_open", Counter())
    monkeypatch.setattr(consumers, "FOLLOW_S", 0.01)
    monkeypatch.setattr(consumers.ChangesConsumer, "_follow", lambda _: consumers._tailer())
    token = token_of("mal")
    return lambda story: asyncio.run(story(token))


@pytest.mark.parametrize("message", ["websocket.accept", "reset", "ping"])
def test_nothing_is_left_of_a_socket_whose_client_leaves_while_it_opens(play, message):
    async def story(token: str) -> None:
        async with a_socket(Client(token, leaves_at=message, since="since=999999")):
            pass

    play(story)


@pytest.mark.parametrize("text", ["llama", "beaver"])
def test_nothing_is_left_of_a_socket_whose_client_leaves_while_it_is_told(play, text):
    """By the one that follows the journal, or by the channel layer."""

    async def story(token: str) -> None:
        client = Client(token, leaves_at=text)
        async with a_socket(client):
            await client.until("ping")
            if text == "llama":
                await sync_to_async(change)("llama")
            else:
                # The layer's message is handled before the client's end is read.
                client.is_gone = True
                [socket] = consumers._tailer().sockets
                told = {"kind": "Job", "namespace": "default", "name": text}
                await socket.channel_layer.send(socket.channel_name, {"type": "changes", "changes": [told]})

    play(story)


def test_nothing_is_left_of_a_socket_whose_client_leaves_after_a_speech_that_is_too_long(play):
    async def story(token: str) -> None:
        client = Client(token)
        async with a_socket(client):
            await client.until("ping")
            client.is_gone = True
            client.said.put_nowait({"type": "websocket.receive", "text": "x" * 5000})

    play(story)


def test_nothing_is_left_of_a_socket_that_could_not_be_told_that_its_client_left(play, monkeypatch):
    """Channels looks at the connections of the database before."""

    async def away() -> None:
        raise RuntimeError("no connection is to be had")

    async def story(token: str) -> None:
        client = Client(token)
        async with a_socket(client):
            await client.until("ping")
            monkeypatch.setattr(consumer, "aclose_old_connections", away)
            client.leave()

    play(story)


@pytest.mark.parametrize("text", ["websocket.accept", "reset", "ping"])
def test_nothing_is_left_of_a_socket_of_a_server_that_stops(play, text):
    async def story(token: str) -> None:
        client = Client(token, since="since=999999")
        async with a_socket(client) as task:
            await client.until(text)
            task.cancel()

    play(story)


def test_nothing_is_left_of_a_socket_that_is_cancelled_while_it_reads_what_it_missed(play, monkeypatch):
    async def story(token: str) -> None:
        reading = asyncio.Event()

        async def missed(self: consumers.ChangesConsumer) -> None:
            reading.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(consumers.ChangesConsumer, "_resume", missed)
        async with a_socket(Client(token)) as task:
            await reading.wait()
            task.cancel()

    play(story)
