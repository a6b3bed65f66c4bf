"""No reader of the journal skips a change, however writers overtake one another: numbers are not commits."""

import random
import threading

import pytest
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from fleet.changes import journal
from fleet.changes.journal import Action, Change

WRITERS, CHANGES = 8, 40


def write(number: int, go: threading.Event, dice: random.Random) -> None:
    """Transactions of uneven length; every fifth is taken back."""
    go.wait()
    for turn in range(CHANGES):
        with transaction.atomic():
            for part in range(dice.randint(1, 3)):
                uid = f"{number}-{turn}-{part}"
                journal.append([Change("Thing", "", uid, uid, Action.ADDED)], timezone.now())
                if dice.random() < 0.3:
                    with connection.cursor() as cursor:
                        cursor.execute("SELECT count(*) FROM fleet_journalentry")
            transaction.set_rollback(turn % 5 == 4)
    connections.close_all()


def follow(seen: list[int], done: threading.Event) -> None:
    """As `fleet.kubeapi.feed` does: on from the newest that was seen."""
    while True:
        last = done.wait(0.001)
        found = journal.after(seen[-1], 50)
        seen += [each.version for each in found]
        if last and not found:
            break
    connections.close_all()


@pytest.mark.django_db(transaction=True)
def test_it_tells_a_follower_every_change_of_concurrent_writers() -> None:
    go, done, seen = threading.Event(), threading.Event(), [journal.head()]
    began = seen[0]
    reader = threading.Thread(target=follow, args=(seen, done))
    writers = [threading.Thread(target=write, args=(n, go, random.Random(n))) for n in range(WRITERS)]  # noqa: S311
    for each in (reader, *writers):
        each.start()
    go.set()
    for each in writers:
        each.join()
    done.set()
    reader.join()
    assert seen[1:] == [each.version for each in journal.after(began, 10**6)]
    assert len(seen) > WRITERS * CHANGES / 2


@pytest.mark.django_db
@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="is about PostgreSQL's planner")
def test_it_reads_no_more_than_what_is_new_even_without_statistics() -> None:
    journal.append([Change("Thing", "", str(i), str(i), Action.ADDED) for i in range(20_000)], timezone.now())
    with CaptureQueriesContext(connection) as asked:
        assert len(journal.after(journal.head() - 10, 20_000, but=["Event", "Work"])) == 10
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN " + asked.captured_queries[-1]["sql"])
        plan = "".join(line for (line,) in cursor.fetchall())
    assert "Seq Scan" not in plan, plan
