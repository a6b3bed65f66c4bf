"""What websockets are told by the channel layer, whose connections may have ended."""

import logging

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from fleet.changes import background_sender, events, journal

CHANGE = journal.Change("Job", "default", "j", "uid", journal.Action.ADDED)


class Layer:
    """Fails so many times."""

    def __init__(self, fails: int) -> None:
        self.fails, self.sent = fails, []

    async def group_send(self, group, message):
        if self.fails:
            self.fails -= 1
            raise RedisConnectionError("Connection closed by server.")
        self.sent.append((group, message))


def tell(layer, monkeypatch) -> None:
    monkeypatch.setattr(events, "get_channel_layer", lambda: layer)
    sender = background_sender.BackgroundSender()
    sender.send(lambda: events._push([(CHANGE, 7)]))
    sender.stop()


@pytest.mark.parametrize("fails", [0, 1])
def test_it_tells_websockets_though_the_last_connection_has_ended(fails, monkeypatch):
    layer = Layer(fails)
    tell(layer, monkeypatch)
    [(group, message)] = layer.sent
    assert (group, message["type"]) == (events.CHANGES_GROUP, "changes")
    assert message["changes"] == [
        {"kind": "Job", "namespace": "default", "name": "j", "id": "uid", "action": "added", "version": 7}
    ]


def test_it_logs_one_line_when_redis_is_away(monkeypatch, caplog):
    caplog.set_level(logging.WARNING, "fleet")
    tell(Layer(9), monkeypatch)
    [record] = caplog.records
    assert record.getMessage() == "websockets were not notified of 1 changes: Connection closed by server."
