"""News goes out in order, one piece's fault is nobody else's, and whoever has news is not held up by it."""

import asyncio
import logging
import threading

import pytest

from fleet.background_sender import BackgroundSender


@pytest.fixture
def sender(caplog):
    caplog.set_level(logging.WARNING, "fleet.background_sender")  # whatever workers of other tests made the root's
    made = BackgroundSender(backlog=3)
    yield made
    made.stop()


def test_it_tells_news_in_the_order_it_was_given_before_the_process_ends(sender):
    told = []
    for number in range(3):
        sender.send(lambda number=number: told.append(number))
    sender.stop()
    assert told == [0, 1, 2]


def test_it_does_not_hold_up_who_has_news(sender):
    may_go_on, here = threading.Event(), threading.get_ident()
    sender.send(may_go_on.wait)
    tellers = []
    sender.send(lambda: tellers.append(threading.get_ident()))
    assert tellers == []
    may_go_on.set()
    sender.stop()
    assert tellers and here not in tellers


def test_it_goes_on_after_news_that_cannot_be_told(sender, caplog):
    told = []
    sender.send(lambda: 1 / 0)
    sender.send(lambda: told.append("next"))
    sender.stop()
    assert told == ["next"]
    assert "news could not be told" in caplog.text


def test_it_leaves_to_the_sweeps_what_is_too_much(sender, caplog):
    busy, may_go_on = threading.Event(), threading.Event()
    sender.send(lambda: (busy.set(), may_go_on.wait()))
    busy.wait(5)
    assert all(sender.send(lambda: None) for _ in range(3))
    assert not sender.send(lambda: None) and not sender.send(lambda: None)
    assert caplog.text.count("left to the sweeps") == 1
    may_go_on.set()


def test_its_connections_last_from_one_piece_of_news_to_the_next(sender):
    loops = []

    async def tell():
        loops.append(asyncio.get_running_loop())

    sender.send(tell)
    sender.send(tell)
    sender.stop()
    assert len(loops) == 2
    assert loops[0] is loops[1]
