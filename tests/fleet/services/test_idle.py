"""What the product's own processes ask of the database when nothing happens, counted in queries."""

import random
import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from fleet.api.http import probes
from fleet.services.operations import processes
from fleet.services.watching.manager import WatchManager
from tests.support.members import eventually, join

pytestmark = pytest.mark.django_db(transaction=True)
NOW = timezone.now()


def queries(work):
    with CaptureQueriesContext(connection) as captured:
        work()
    return len(captured)


@pytest.fixture
def watcher():
    manager = WatchManager(threading.Event(), random.Random(0))
    yield manager
    manager.stop()


def test_a_watcher_asks_once_a_tick_whether_anything_has_changed(watcher):
    watcher.tick(NOW)
    watcher.tick(NOW)
    assert queries(lambda: watcher.tick(NOW + timedelta(seconds=0.3))) == 1


def test_a_watcher_sees_a_cluster_that_joins_with_its_next_tick(watcher, north):
    watcher.tick(NOW)
    watcher.tick(NOW)
    cluster = join(north, "north")
    watcher.tick(NOW + timedelta(seconds=0.3))
    eventually(lambda: cluster.pk in watcher._watches)


def test_a_process_that_is_known_says_that_it_lives_in_one_query():
    processes.beat("worker", NOW)
    assert queries(lambda: processes.beat("worker", NOW + timedelta(seconds=5))) == 1


def test_a_probe_plans_no_migrations_while_none_is_missing(monkeypatch):
    assert probes.check_readiness()[1]["migrations"]["ok"]
    monkeypatch.delattr(probes, "MigrationExecutor")
    assert probes.check_readiness()[1]["migrations"]["ok"]


def test_a_probe_names_migrations_that_are_missing():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, app, name, applied FROM django_migrations WHERE app = 'jobs' ORDER BY id DESC LIMIT 1"
        )
        row = cursor.fetchone()
        cursor.execute("DELETE FROM django_migrations WHERE id = %s", [row[0]])
    try:
        check = probes.check_readiness()[1]["migrations"]
    finally:
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO django_migrations (id, app, name, applied) VALUES (%s, %s, %s, %s)", row)
    assert not check["ok"] and "1 migrations are not applied" in check["detail"]
