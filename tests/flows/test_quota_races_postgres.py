"""The races once more on PostgreSQL, which lets many write at once where SQLite lets one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import postgres

RACES = Path(__file__).with_name("test_quota_races.py")


@pytest.mark.skipif(bool(postgres.MISSING), reason=f"not at hand: {', '.join(postgres.MISSING)}")
def test_it_loses_nothing_on_postgresql_either():
    with postgres.started() as url:
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(RACES)]
        done = subprocess.run(
            command, env={**os.environ, "DATABASE_URL": url}, capture_output=True, text=True, check=False, timeout=240
        )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "100%" in done.stdout and "skipped" not in done.stdout
