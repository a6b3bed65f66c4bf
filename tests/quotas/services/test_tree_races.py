"""Several people change the tree at once: no change is lost, and tree and queues always fit each other."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from django.db import connection

from fleet.errors import Conflict
from quotas import queries
from quotas.models import Queue
from quotas.services import trees
from tests.quotas.core.builders import manifest, quota

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def change(number: int) -> str:
    root = quota("root", 9, 9, quota(f"team-{number}"), quota("all"))
    try:
        return trees.apply(manifest(root), by=f"person {number}", now=NOW).action
    except Conflict:
        return "conflict"
    finally:
        connection.close()


@pytest.mark.django_db(transaction=True)
def test_it_counts_every_change_and_keeps_queues_and_tree_together():
    with ThreadPoolExecutor(6) as people:
        done = list(people.map(change, range(18)))
    assert done.count("created") == 1
    assert queries.tree_row().generation == 1 + done.count("configured")
    paths = set(Queue.objects.values_list("path", flat=True))
    assert paths == {node.path for node in queries.tree().nodes}
