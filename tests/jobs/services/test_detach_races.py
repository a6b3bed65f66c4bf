"""A cluster is detached by force while its jobs are being deleted: the two wait for each other in one order, so both end."""

from concurrent.futures import Future, ThreadPoolExecutor
from time import monotonic, sleep
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from fleet.models import Cluster
from fleet.services.clusters import clusters
from jobs.models import Job, Work
from jobs.services.submission.changes import actions
from tests.support import books
from tests.support.world import pytorch_job

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'postgresql'", reason="on SQLite one transaction writes at a time"),
]
PATIENCE_S = 60.0
_WAITS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


def delete_job(name: str) -> None:
    try:
        actions.delete(Job.objects.get(name=name), by="ada", now=timezone.now())
    finally:
        connection.close()


def wait_until_it_waits(deletion: Future[None]) -> None:
    deadline = monotonic() + PATIENCE_S
    while not deletion.done():
        with connection.cursor() as cursor:
            cursor.execute(_WAITS)
            if cursor.fetchone()[0]:
                return
        assert monotonic() < deadline
        sleep(0.01)


def test_it_does_not_deadlock_with_the_deletion_of_a_job_that_has_a_copy_there():
    north = books.a_cluster("north")
    books.apply(pytorch_job("llama"))
    books.cycle()
    books.sent()
    deletions: list[Future[None]] = []

    def begin_deletion(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        """Once the works of the cluster are deleted, a deletion of their job goes as far as it can."""
        result = execute(sql, params, many, context)
        if sql.startswith('DELETE FROM "jobs_work"') and not deletions:
            deletions.append(other.submit(delete_job, "llama"))
            wait_until_it_waits(deletions[0])
        return result

    with ThreadPoolExecutor(1) as other:
        with connection.execute_wrapper(begin_deletion):
            clusters.detach(north, by="bob", now=timezone.now(), force=True)
        deletions[0].result(PATIENCE_S)
    assert not Cluster.objects.filter(name="north").exists() and not Work.objects.exists()
    assert not Job.objects.filter(deleting_at=None).exists()
