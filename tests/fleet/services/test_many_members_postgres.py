"""24 members once more on PostgreSQL, with a pool of four connections; and what PostgreSQL takes for no text."""

from pathlib import Path

import pytest

from tests.support import postgres

pytestmark = pytest.mark.skipif(bool(postgres.MISSING), reason=f"not at hand: {', '.join(postgres.MISSING)}")
HERE = Path(__file__).parent


def test_it_watches_them_with_a_pool_of_four_and_survives_unwritable_objects():
    tests = [HERE / "test_many_members.py", HERE / "test_unwritable.py", HERE / "test_pictures.py"]
    postgres.passes(*tests, CONVOY_DATABASE_POOL="4")
