"""The last fleet admin stays on PostgreSQL as well, where two transactions really run at once."""

from pathlib import Path

import pytest

from tests.support import postgres


@pytest.mark.skipif(bool(postgres.MISSING), reason=f"not at hand: {', '.join(postgres.MISSING)}")
def test_the_last_admin_stays_on_postgresql():
    postgres.passes(Path(__file__).with_name("test_last_admin.py"))
