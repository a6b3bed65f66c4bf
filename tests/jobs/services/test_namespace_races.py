"""A job that is being submitted when its namespace is deleted goes with it: none survives a deletion that has ended."""

from concurrent.futures import Future, ThreadPoolExecutor
from time import monotonic, sleep
from typing import Any

import pytest
import yaml
from django.db import connection
from django.utils import timezone

from fleet.changes import dry_runs, journal
from fleet.kube.server.kinds import Write
from fleet.kubeapi.objects.namespaces import CONFIRM, Namespaces
from fleet.models import Namespace
from jobs.kubeapi.kinds import CONTENTS
from jobs.models import Job
from jobs.services.submission import submit
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE_S = 120.0
_WAITS = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"


def submitted(name: str) -> None:
    body = yaml.safe_load(pytorch_job(name))
    body["metadata"]["namespace"] = "vision"
    submit.apply([body], by="admin", now=timezone.now())


def deleted(objects: int) -> None:
    """As `kubectl delete namespace vision` does it."""
    try:
        current = {"metadata": {"name": "vision", "uid": "vision", "annotations": {CONFIRM: str(objects)}}}
        Namespaces(CONTENTS, list).remove(current, {}, Write("ada", timezone.now()))
    finally:
        connection.close()


def done_or_waiting(deletion: Future[None]) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(_WAITS)
        return deletion.done() or cursor.fetchone()[0] > 0


def test_a_job_that_passed_the_check_before_the_deletion_began_goes_with_its_namespace(admin):
    if connection.vendor != "postgresql":
        pytest.skip("on SQLite the deletion begins once the submission has ended")
    submitted("first")
    deletions: list[Future[None]] = []

    def begin_deletion(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        """Right after the submission has seen that the namespace is not being deleted, a deletion goes as far as it can."""
        result = execute(sql, params, many, context)
        if "fleet_namespace.deleting_at IS NOT NULL" in sql.replace('"', "") and not deletions:
            deletions.append(other.submit(deleted, 1))
            deadline = monotonic() + PATIENCE_S
            while not done_or_waiting(deletions[0]):
                assert monotonic() < deadline
                sleep(0.01)
        return result

    with ThreadPoolExecutor(1) as other:
        with connection.execute_wrapper(begin_deletion):
            submitted("second")
        deletions[0].result(PATIENCE_S)
    assert not Job.objects.exists() and not Namespace.objects.exists()


def test_what_is_submitted_later_begins_the_namespace_anew(admin):
    submitted("first")
    deleted(1)
    submitted("second")
    assert list(Job.objects.values_list("name", flat=True)) == ["second"]


def in_another(connection_of: ThreadPoolExecutor, work: Any, *args: Any) -> Any:
    """What a request in another process does meanwhile: it fails here if it waits for this one."""

    def done() -> Any:
        try:
            return work(*args)
        finally:
            connection.close()

    return connection_of.submit(done).result(PATIENCE_S)


def test_a_dry_run_keeps_no_deletion_no_submission_and_no_reader_of_the_journal_waiting(admin):
    """It held the namespace and the journal for as long as it took; a preview plays a whole cycle meanwhile."""
    if connection.vendor != "postgresql":
        pytest.skip("on SQLite one transaction writes at a time")
    submitted("first")
    with ThreadPoolExecutor(1) as other, dry_runs.taken_back():
        submitted("tried")
        in_another(other, submitted, "second")
        newest = in_another(other, journal.head)
        in_another(other, deleted, 2)
        assert in_another(other, journal.head) > newest, "what was written meanwhile is read meanwhile"
    assert not Job.objects.exists()
