"""Forty schedules of the fault engine, on PostgreSQL and SQLite with Valkey, run by `make check-full`: each target, each fault.

`make faults SEEDS=500` runs more of them; a schedule that failed says how it is run again.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.bootstrap.home import ROOT
from deploy.supervisor import broker
from tests.faults.engine.named import FOUND

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(
        os.environ.get("CONVOY_HYPOTHESIS") != "full", reason="takes ten minutes: run by make check-full"
    ),
    pytest.mark.skipif(sys.platform != "linux", reason="forks and stops processes as on Linux only"),
    pytest.mark.skipif(
        "DATABASE_URL" in os.environ, reason="starts its own servers of both kinds, in the run on SQLite"
    ),
    pytest.mark.skipif(not (broker.embedded_program() or broker.found_program()), reason="there is no Valkey or Redis"),
]
POSTGRES, SQLITE = 28, 12
"""Of the forty: PostgreSQL is where two processes meet in one row."""
AT_ONCE = 2
LIMIT_S = 1500


def passes(database: str, seeds: list[int], keep: Path) -> None:
    command = [sys.executable, "-m", "tests.faults.engine", "--database", database, "--at-once", str(AT_ONCE)]
    command += ["--list", ",".join(map(str, seeds)), "--keep", str(keep)]
    env = {
        name: value for name, value in os.environ.items() if not name.startswith(("DJANGO_", "CONVOY_", "DATABASE_"))
    }
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert f"{len(seeds)} schedules on {database}" in done.stdout


def seeds_of(database: str, count: int) -> list[int]:
    """The named ones are run as well, where they failed."""
    first = 0 if database == "postgres" else POSTGRES
    return sorted({*range(first, first + count), *(found.seed for found in FOUND if found.database == database)})


def test_it_keeps_its_promises_on_postgresql_whatever_is_struck(tmp_path):
    passes("postgres", seeds_of("postgres", POSTGRES), tmp_path)


def test_it_keeps_its_promises_on_sqlite_whatever_is_struck(tmp_path):
    passes("sqlite", seeds_of("sqlite", SQLITE), tmp_path)
