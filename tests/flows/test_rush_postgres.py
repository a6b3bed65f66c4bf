"""The rush on PostgreSQL, where all of it really happens at once: no transaction ever waits for one that waits for it."""

from pathlib import Path

import pytest

from tests.support import postgres


@pytest.mark.skipif(bool(postgres.MISSING), reason=f"not at hand: {', '.join(postgres.MISSING)}")
def test_it_never_deadlocks_with_two_of_each_process():
    postgres.passes(Path(__file__).with_name("test_rush.py"))
