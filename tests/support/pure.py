"""Tests of the pure packages, which answer alike on any database: they open none.

The packages may import neither Django nor a client of a server (`.importlinter`), and pytest-django lets no test open the
database that does not ask for it; one of these that asks fails. So a run on PostgreSQL and Valkey leaves them out.
"""

import pytest

FOLDERS = ("tests/fleet/core", "tests/jobs/core", "tests/jobs/kinds", "tests/jobs/runtime", "tests/quotas/core")
_OPENS = "django_db_setup"
"""What every fixture of a database asks for."""


def opens_a_database(item: pytest.Item) -> bool:
    return _OPENS in getattr(item, "fixturenames", ()) or item.get_closest_marker("django_db") is not None


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.nodeid.startswith(tuple(f"{folder}/" for folder in FOLDERS)) and opens_a_database(item):
        pytest.fail(
            "a test of a pure package asks for the database, and the run on PostgreSQL would not see it: "
            "move it to the tests of the services"
        )
