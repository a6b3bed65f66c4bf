"""Reclaim for jobs that are alike once more on PostgreSQL."""

from pathlib import Path

import pytest

from tests.support import postgres

STORIES = Path(__file__).with_name("test_preemption_alike.py")


@pytest.mark.skipif(bool(postgres.MISSING), reason=f"not at hand: {', '.join(postgres.MISSING)}")
def test_it_preempts_the_same_on_postgresql():
    postgres.passes(STORIES)
