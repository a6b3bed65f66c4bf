"""The races once more on PostgreSQL, which lets many write at once where SQLite lets one."""

from pathlib import Path

import pytest

from tests.support import postgres

RACES = Path(__file__).with_name("test_quota_races.py")


@pytest.mark.skipif(bool(postgres.MISSING), reason=f"not at hand: {', '.join(postgres.MISSING)}")
def test_it_loses_nothing_on_postgresql_either():
    postgres.passes(RACES)
