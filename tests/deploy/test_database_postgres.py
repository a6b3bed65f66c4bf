"""A connection that PostgreSQL has closed meanwhile costs nobody an error: it is replaced when it is next used."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from psycopg_pool.base import AttemptWithBackoff

from deploy.config import settings
from tests.support import postgres

USES_A_CLOSED_CONNECTION = """
import django, psycopg, os
django.setup()
from django.db import connection
def pid():
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return cursor.fetchone()[0]
first = pid()
connection.close()
with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as other:
    other.execute("SELECT pg_terminate_backend(%s, 5000)", [first])
assert pid() != first
connection.close_pool()
"""
STOPS_IN_A_TRANSACTION = """
import django, psycopg, os
django.setup()
from django.db import DatabaseError, connection, transaction
with connection.cursor() as cursor:
    cursor.execute("CREATE TABLE leases AS SELECT 1 AS term")
try:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT * FROM leases FOR UPDATE")
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as other:
            other.execute("SET lock_timeout = '60s'")
            other.execute("UPDATE leases SET term = 2")  # waits until the lock is free
        cursor.execute("UPDATE leases SET term = term - 1")
except DatabaseError as error:
    print(error)
with connection.cursor() as cursor:
    cursor.execute("SELECT term FROM leases")
    assert cursor.fetchone() == (2,), "what it did not see, it does not undo"
connection.close_pool()
"""


def run(program: str, home: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    with postgres.started() as url:
        settled = {"DATABASE_URL": url, "CONVOY_HOME": str(home), "DJANGO_SETTINGS_MODULE": "deploy.config.settings"}
        return subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, **settled, **environ},
            capture_output=True,
            text=True,
            timeout=120,
        )


def test_it_replaces_a_connection_that_the_server_has_closed(tmp_path):
    done = run(USES_A_CLOSED_CONNECTION, tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_process_that_stops_in_a_transaction_keeps_its_locks_for_a_while_only(tmp_path):
    done = run(STOPS_IN_A_TRANSACTION, tmp_path, CONVOY_TRANSACTION_IDLE_S="0.5")
    assert done.returncode == 0, done.stderr[-2000:]
    assert "idle-in-transaction timeout" in done.stdout


def test_it_looks_for_a_server_that_is_away_every_few_seconds_however_long_that_lasts():
    """Left alone, the pool doubles its pauses up to minutes: an outage would last twice as long for every process."""
    pool = settings.DATABASE_POOL
    attempt, now, longest_s = AttemptWithBackoff(timeout=pool["reconnect_timeout"]), 0.0, 0.0
    while not attempt.time_to_give_up(now):
        attempt.update_delay(now)
        longest_s, now = max(longest_s, attempt.delay), now + attempt.delay
    assert longest_s <= 5 and now <= 10


def test_tests_on_it_fail_when_its_log_contains_a_deadlock() -> None:
    with pytest.raises(postgres.Deadlocks), postgres.started() as url:
        deadlock(url)


def deadlock(url: str) -> None:
    with psycopg.connect(url) as one, psycopg.connect(url) as two, ThreadPoolExecutor() as together:
        locks = [f"SELECT pg_advisory_xact_lock({number})" for number in (1, 2)]
        one.execute(locks[0])
        two.execute(locks[1])
        waits = [together.submit(one.execute, locks[1]), together.submit(two.execute, locks[0])]
        assert sum(isinstance(wait.exception(), psycopg.errors.DeadlockDetected) for wait in waits) == 1
