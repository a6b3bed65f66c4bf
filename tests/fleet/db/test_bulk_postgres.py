"""Many rows written with one statement once more, on PostgreSQL, which is told them in other ways than SQLite."""

from pathlib import Path

import pytest

from tests.support import postgres


@pytest.mark.skipif(bool(postgres.MISSING), reason=f"not at hand: {', '.join(postgres.MISSING)}")
def test_it_writes_the_same_on_postgresql():
    postgres.passes(Path(__file__).with_name("test_bulk.py"))
