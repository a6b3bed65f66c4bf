"""Events are read in pieces, by whichever thread is free, and with their reader's pauses in between."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.utils import timezone

from fleet.kube.server import watching
from fleet.kube.server.selection import Selection
from fleet.kube.server.watching import WatchOptions
from fleet.kubeapi.objects.fleet_kinds import Events
from fleet.kubeapi.watching import View
from fleet.models import Event

COUNT = 2 * Events.chunk + 7
pytestmark = pytest.mark.django_db(transaction=True)


def come(first: int, count: int) -> None:
    now = timezone.now()
    Event.objects.bulk_create(
        Event(regarding_kind="Job", regarding_namespace="default", regarding_name="llama", regarding_uid="u",
              reason="Started", message=str(number), source="convoy", first_at=now, last_at=now)
        for number in range(first, first + count)
    )  # fmt: skip


def close() -> None:
    """The connection of the thread it is called in."""
    connection.close()


def messages(events: Iterable[watching.Event]) -> bytes:
    return b"".join(event.shown["message"].encode() + b"\n" for event in events)


def test_no_piece_keeps_a_cursor_or_a_snapshot_in_the_thread_that_read_it() -> None:
    """That thread's next write would fail on SQLite; on PostgreSQL its connection would be used beside other requests."""
    come(0, COUNT)
    pieces = View(WatchOptions(Events(()), None, Selection(), 0)).pieces(messages)
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as another:
        seen = one.submit(next, pieces).result(120)
        come(COUNT, 1)
        assert one.submit(Event.objects.count).result(120) == COUNT + 1
        one.submit(come, COUNT + 1, 1).result(120)
        one.submit(close).result(120)
        seen += another.submit(b"".join, pieces).result(120)
        another.submit(close).result(120)
    assert [int(line) for line in seen.splitlines()] == list(range(COUNT + 2))


def test_a_reader_comes_to_an_end_however_fast_events_come() -> None:
    come(0, COUNT)
    seen = 0
    for piece in View(WatchOptions(Events(()), None, Selection(), 0)).pieces(messages):
        come(0, 200)
        seen += piece.count(b"\n")
        assert seen < 3 * COUNT
