"""A log's place among those that are read at a time is given back however its answer ends."""

import gc
import threading

from django.test import AsyncRequestFactory

from jobs.api.inspect import logs
from jobs.services.inspect.logs import Log


class Client:
    """What a log needs of its client."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    def close(self) -> None:
        self.closed.set()


def test_it_gives_its_place_back_when_the_server_drops_the_answer_unread() -> None:
    client, places = Client(), logs._places._value
    log = Log(None, client, iter([b"one"]))  # type: ignore[arg-type]  # what a log needs of its pod and client
    answer = logs.plain_text(AsyncRequestFactory().get("/"), log, lambda: True)
    assert logs._places._value == places - 1
    del answer, log
    gc.collect()
    assert logs._places._value == places
    assert client.closed.is_set()
