"""Tests on the servers of production: ``python3 manage.py test --postgres [pytest's arguments]``.

One PostgreSQL and one Valkey serve the whole run. Each process of the tests has a copy of a migrated database, and a number of
the broker. Without paths among the arguments, the packages run whose code writes rows beside other writers. The run fails when
the server's log contains a deadlock, even if all tests passed.
"""

import os
import subprocess
import sys
from pathlib import Path

import psycopg

from tests.support import postgres, pure, valkey

PACKAGES = ("tests/jobs", "tests/fleet", "tests/quotas", "tests/faults")
_STORIES = (
    "dispatch_isolation", "division", "drain", "failover", "main_job", "out_of_sight", "policies", "quota_races",
    "quota_reclaim", "reservations",
)  # fmt: skip
FLOWS = tuple(f"tests/flows/test_{story}.py" for story in _STORIES)
"""The flows with many writers. The others spend their time in clients, or measure it, and run on SQLite and on request."""
OTHERS = ("tests/attacks/test_known_errors.py", "tests/deploy/test_migrations.py")
"""What the two databases answer differently: text that cannot be stored, and indexes that are built beside writers."""
TEMPLATE = "convoy_template"
_CLIENTS = tuple(
    f"tests/fleet/kubeapi/test_kubectl_{about}.py" for about in ("discovery", "documents", "events", "schemas", "top")
)
"""Stock clients that read, or apply one object after another: what they send to the database, other tests send here."""
_TABLES = (
    "tests/fleet/test_authorisation_matrix.py", "tests/fleet/test_authorisation_matrix_admin.py",
    "tests/fleet/test_authorisation_matrix_proxy.py",
)  # fmt: skip
"""Whom the rules let in, row by row of a table: the same requests are made here by other tests, once."""
WITHOUT_WRITERS = (*_CLIENTS, *_TABLES)
LEFT_OUT = tuple(f"--ignore={path}" for path in (*pure.FOLDERS, *WITHOUT_WRITERS))
"""Of the pure folders 2,200 tests open no database, which their setup makes sure of (`tests.support.pure`)."""


def run(arguments: list[str]) -> int:
    """pytest's exit code, or 1 after a deadlock."""
    try:
        with postgres.started() as server, valkey.started() as broker:
            environ = {**os.environ, "REDIS_URL": broker, "DATABASE_URL": postgres.database(server, TEMPLATE)}
            _make_template(server, environ)
            environ |= {"CONVOY_TEST_TEMPLATE": TEMPLATE, "DATABASE_URL": postgres.database(server, "convoy")}
            command = [sys.executable, "-m", "pytest", *paths(arguments)]
            return subprocess.run(command, env=environ, check=False).returncode
    except postgres.Deadlocks as e:
        sys.stderr.write(f"{e}\n")
        return 1


def paths(arguments: list[str]) -> list[str]:
    """The arguments; with the packages, but for what gains nothing there, when they name no file or folder."""
    named = any(Path(argument.partition("::")[0]).exists() for argument in arguments)
    return arguments if named else [*arguments, *LEFT_OUT, *PACKAGES, *FLOWS, *OTHERS]


def _make_template(server: str, environ: dict[str, str]) -> None:
    """What every process of the tests copies, instead of migrating a database of its own."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {TEMPLATE}")
    command = [sys.executable, "-m", "django", "migrate", "-v0"]
    subprocess.run(command, env={**environ, "DJANGO_SETTINGS_MODULE": "deploy.config.testing"}, check=True)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
