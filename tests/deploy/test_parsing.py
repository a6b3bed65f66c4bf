"""No thread interrupts another that parses: CPython up to 3.11.7 mixes up their depths."""

import ast
import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event

from tests.support import parsing
from tests.support.parsing import uninterrupted


def test_no_garbage_is_collected_while_a_text_is_parsed(monkeypatch):
    monkeypatch.setattr(parsing, "_parse", lambda *_, **__: gc.isenabled())
    assert ast.parse("a = 1") is False and gc.isenabled()


def test_what_parses_within_does_not_begin_to_collect():
    with uninterrupted():
        ast.parse("a = 1")
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_thread_that_parses_is_waited_for():
    begun, goes_on, order = Event(), Event(), []

    def parse(name: str, meanwhile: Callable[[], object]) -> None:
        with uninterrupted():
            meanwhile()
            order.append(name)

    def first() -> None:
        begun.set()
        assert goes_on.wait(60)

    with ThreadPoolExecutor(2) as threads:
        one = threads.submit(parse, "first", first)
        assert begun.wait(60)
        other = threads.submit(parse, "second", lambda: None)
        assert not order
        goes_on.set()
        one.result(60), other.result(60)
    assert order == ["first", "second"]
