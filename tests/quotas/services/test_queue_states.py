"""Queues change while the tree does: nobody waits for anybody in a ring, and of two who differ one is told."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from django.db import connection

from fleet.errors import Conflict
from quotas.models import Queue
from quotas.services import queues, trees
from tests.quotas.core.builders import manifest, quota

NOW = datetime(2026, 1, 1, tzinfo=UTC)
pytestmark = pytest.mark.django_db(transaction=True)


def apply(number: int) -> None:
    trees.apply(manifest(quota("root", 9, 9, quota("a"), quota(f"b{number}"))), by="test", now=NOW)


def test_it_refuses_the_second_of_two_who_saw_the_same():
    apply(0)
    mine, theirs = Queue.objects.get(path="root/a"), Queue.objects.get(path="root/a")
    assert queues.set_state(mine, Queue.State.HELD, by="ada", now=NOW)
    assert not queues.set_state(mine, Queue.State.HELD, by="ada", now=NOW)
    with pytest.raises(Conflict, match="look again"):
        queues.set_state(theirs, Queue.State.STOPPED, by="eve", now=NOW)


def test_it_keeps_the_state_of_a_queue_whose_node_stays():
    apply(0)
    queues.set_state(Queue.objects.get(path="root/a"), Queue.State.HELD, by="ada", now=NOW)
    apply(1)
    assert Queue.objects.get(path="root/a").state == "Held"


def test_it_gets_through_while_the_tree_changes():
    apply(0)

    def act(number: int) -> str:
        try:
            if number % 2:
                apply(number)
            else:
                queues.set_state(
                    Queue.objects.get(path="root/a"),
                    Queue.State.HELD if number % 4 else Queue.State.OPEN,
                    by="x",
                    now=NOW,
                )
        except Conflict:
            return "conflict"
        finally:
            connection.close()
        return "done"

    with ThreadPoolExecutor(6) as people:
        done = list(people.map(act, range(40)))
    assert done.count("done") >= 20 and Queue.objects.filter(path="root/a").count() == 1
