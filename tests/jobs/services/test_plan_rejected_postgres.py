"""Rejected placements once more on PostgreSQL, whose transactions end with their first error."""

from pathlib import Path

import pytest

from tests.support import postgres

STORIES = Path(__file__).with_name("test_plan_rejected.py")


@pytest.mark.skipif(bool(postgres.MISSING), reason=f"not at hand: {', '.join(postgres.MISSING)}")
def test_it_rejects_the_same_on_postgresql():
    postgres.passes(STORIES)
