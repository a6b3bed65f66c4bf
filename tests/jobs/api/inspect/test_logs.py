"""A log's place among those that are read at a time is given back however its answer ends."""

import gc
import threading

from django.test import AsyncRequestFactory

from jobs.api.inspect import logs
from jobs.services.inspect.logs import Log

ADA = 1
"""Her number."""


class Client:
    """What a log needs of its client."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    def close(self) -> None:
        self.closed.set()


def test_it_gives_its_place_back_when_the_server_drops_the_answer_unread() -> None:
    gc.collect()  # answers that tests before this one dropped
    read_before = logs.reading.total()
    client = Client()
    log = Log(None, client, iter([b"one"]))  # type: ignore[arg-type]  # what a log needs of its pod and client
    answer = logs.plain_text(AsyncRequestFactory().get("/"), ADA, log, lambda: True)
    assert logs.reading.total() == read_before + 1
    del answer, log
    gc.collect()
    assert logs.reading.total() == read_before
    assert client.closed.is_set()
