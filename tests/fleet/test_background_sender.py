"""News goes out in order, one piece's fault is nobody else's, and whoever has news is not held up by it."""

import asyncio
import logging
import threading

import pytest

from fleet.background_sender import Courier


@pytest.fixture
def courier(caplog):
    caplog.set_level(logging.WARNING, "fleet.background_sender")  # whatever workers of other tests made the root's
    made = Courier(backlog=3)
    yield made
    made.stop()


def test_it_tells_news_in_the_order_it_was_given_before_the_process_ends(courier):
    told = []
    for number in range(3):
        courier.carry(lambda number=number: told.append(number))
    courier.stop()
    assert told == [0, 1, 2]


def test_it_does_not_hold_up_who_has_news(courier):
    may_go_on, here = threading.Event(), threading.get_ident()
    courier.carry(may_go_on.wait)
    tellers = []
    courier.carry(lambda: tellers.append(threading.get_ident()))
    assert tellers == []
    may_go_on.set()
    courier.stop()
    assert tellers and here not in tellers


def test_it_goes_on_after_news_that_cannot_be_told(courier, caplog):
    told = []
    courier.carry(lambda: 1 / 0)
    courier.carry(lambda: told.append("next"))
    courier.stop()
    assert told == ["next"]
    assert "news could not be told" in caplog.text


def test_it_leaves_to_the_sweeps_what_is_too_much(courier, caplog):
    busy, may_go_on = threading.Event(), threading.Event()
    courier.carry(lambda: (busy.set(), may_go_on.wait()))
    busy.wait(5)
    assert all(courier.carry(lambda: None) for _ in range(3))
    assert not courier.carry(lambda: None) and not courier.carry(lambda: None)
    assert caplog.text.count("left to the sweeps") == 1
    may_go_on.set()


def test_its_connections_last_from_one_piece_of_news_to_the_next(courier):
    loops = []

    async def tell():
        loops.append(asyncio.get_running_loop())

    courier.carry(tell)
    courier.carry(tell)
    courier.stop()
    assert len(loops) == 2
    assert loops[0] is loops[1]
