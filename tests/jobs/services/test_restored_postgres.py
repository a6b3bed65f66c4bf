"""Restored backups once more on PostgreSQL."""

from pathlib import Path

import pytest

from tests.support import postgres

STORIES = [Path(__file__).with_name("test_restored.py"), Path(__file__).parent / "scheduling" / "test_cycle_overdue.py"]


@pytest.mark.skipif(bool(postgres.MISSING), reason=f"not at hand: {', '.join(postgres.MISSING)}")
def test_it_adopts_the_same_on_postgresql():
    postgres.passes(*STORIES)
