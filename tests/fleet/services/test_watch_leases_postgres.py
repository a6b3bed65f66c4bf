"""Leases of watchers, and fenced writes, once more on PostgreSQL: there the locks are real."""

from pathlib import Path

import pytest

from tests.support import postgres

pytestmark = pytest.mark.skipif(bool(postgres.MISSING), reason=f"not at hand: {', '.join(postgres.MISSING)}")
HERE = Path(__file__).parent


def test_watchers_share_members_and_writes_are_fenced():
    postgres.passes(HERE / "test_watch_leases.py", HERE.parent / "db" / "test_fencing.py")
