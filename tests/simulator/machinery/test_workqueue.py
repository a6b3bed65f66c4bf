"""Keys come once, to one worker at a time, and late ones in time."""

import time

from simulator.machinery.workqueue import WorkQueue


def test_it_gives_a_key_once_however_often_it_is_added() -> None:
    queue = WorkQueue()
    for key in ("a", "b", "a"):
        queue.add(key)
    assert [queue.take(), queue.take()] == ["a", "b"]


def test_it_gives_a_key_again_only_after_its_worker_is_done() -> None:
    queue = WorkQueue()
    queue.add("a")
    queue.take()
    queue.add("a")
    queue.add("b")
    assert queue.take() == "b"
    queue.done("a")
    assert queue.take() == "a"


def test_it_keeps_the_earliest_of_several_delays() -> None:
    queue = WorkQueue()
    queue.add_after("a", 3600)
    queue.add_after("a", 0.01)
    began = time.monotonic()
    assert queue.take() == "a"
    assert time.monotonic() - began < 60


def test_it_lets_workers_go_when_closed() -> None:
    queue = WorkQueue()
    queue.close()
    assert queue.take() is None
