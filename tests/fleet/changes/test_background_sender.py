"""Messages are sent in order, an error of one does not concern the next, and no caller waits."""

import asyncio
import logging
import threading

import pytest

from fleet.changes.background_sender import BackgroundSender


@pytest.fixture
def sender(caplog):
    caplog.set_level(
        logging.WARNING, "fleet.changes.background_sender"
    )  # whatever workers of other tests made the root's
    made = BackgroundSender(backlog=3)
    yield made
    made.stop()


def test_it_sends_messages_in_their_order_before_the_process_ends(sender):
    sent = []
    for number in range(3):
        sender.send(lambda number=number: sent.append(number))
    sender.stop()
    assert sent == [0, 1, 2]


def test_it_does_not_make_its_callers_wait(sender):
    may_go_on, here = threading.Event(), threading.get_ident()
    sender.send(may_go_on.wait)
    threads = []
    sender.send(lambda: threads.append(threading.get_ident()))
    assert threads == []
    may_go_on.set()
    sender.stop()
    assert threads and here not in threads


def test_it_goes_on_after_a_message_that_cannot_be_sent(sender, caplog):
    sent = []
    sender.send(lambda: 1 / 0)
    sender.send(lambda: sent.append("next"))
    sender.stop()
    assert sent == ["next"]
    assert "message could not be sent" in caplog.text


def test_it_leaves_to_the_sweeps_what_is_too_much(sender, caplog):
    busy, may_go_on = threading.Event(), threading.Event()
    sender.send(lambda: (busy.set(), may_go_on.wait()))
    busy.wait(60)
    assert all(sender.send(lambda: None) for _ in range(3))
    assert not sender.send(lambda: None) and not sender.send(lambda: None)
    assert caplog.text.count("left to the sweeps") == 1
    may_go_on.set()


def test_its_connections_last_from_one_message_to_the_next(sender):
    loops = []

    async def tell():
        loops.append(asyncio.get_running_loop())

    sender.send(tell)
    sender.send(tell)
    sender.stop()
    assert len(loops) == 2
    assert loops[0] is loops[1]
