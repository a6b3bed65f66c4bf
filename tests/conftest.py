"""The cast: an admin, an editor of vision, a viewer of speech, and the REST clients they speak through."""

import gc
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import TransactionTestCase
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient
from whitenoise.middleware import WhiteNoiseMiddleware

from fleet.api.http.recent_checks import RECENT
from fleet.api.sign_in.signing_in import ATTEMPTS
from fleet.db import isolation
from fleet.limits.buckets import Buckets
from fleet.models import Cluster, Grant
from fleet.services.auditing import audit, refusal_counts
from quotas.services import past_trees
from tests.support import emptying, examples, parsing, template
from tests.support.fixtures import resting_worker
from tests.support.kept import pytest_runtest_teardown
from tests.support.people import client_of, person
from tests.support.pure import pytest_runtest_setup

__all__ = ["pytest_runtest_setup", "pytest_runtest_teardown", "resting_worker"]
examples.load()
parsing.protect()


def pytest_collection_finish() -> None:
    """What is loaded by now stays: the garbage collector need not look at it time and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def django_db_keepdb(django_db_keepdb: bool, django_db_modify_db_settings: None) -> bool:
    """SQLite begins with a copy of a migrated database, to be used as it is."""
    database = settings.DATABASES["default"]
    if not database["ENGINE"].endswith("sqlite3"):
        return django_db_keepdb
    template.copy_to(Path(database["TEST"]["NAME"]))
    return True


@pytest.fixture(scope="session", autouse=True)
def emptied_tables() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", emptying.after_test)
        yield


@pytest.fixture(scope="session", autouse=True)
def counts_of_refusals_are_not_written() -> Iterator[None]:
    """A thread that wrote them would write into the database of another test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refusal_counts.Writer, "start", lambda writer: threading.current_thread())
        yield


@pytest.fixture(autouse=True)
def refused_writes_of_other_tests_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "SINGLY", Buckets(0.2, 60))


@pytest.fixture(scope="session", autouse=True)
def questions_for_the_time_are_not_counted() -> Iterator[None]:
    """The database's clock is asked anew every few seconds, which on a slow machine falls into a test that counts queries."""
    captured = CaptureQueriesContext.captured_queries.fget

    def but_the_time(queries: CaptureQueriesContext) -> list[dict[str, Any]]:
        return [query for query in captured(queries) if "clock_timestamp()" not in query["sql"]]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CaptureQueriesContext, "captured_queries", property(but_the_time))
        yield


@pytest.fixture(scope="session", autouse=True)
def static_files_are_searched_once() -> Iterator[None]:
    """Not by each client of each test: 200 files, 10 ms."""
    search = WhiteNoiseMiddleware.add_files_from_finders
    static_files: dict[str, Any] = {}

    def search_once(middleware: WhiteNoiseMiddleware) -> None:
        if not static_files:
            search(middleware)
            static_files.update(middleware.files)
        middleware.files.update(static_files)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WhiteNoiseMiddleware, "add_files_from_finders", search_once)
        yield


@pytest.fixture(autouse=True)
def attempts_of_now_only() -> None:
    """The same few people sign in in every test."""
    ATTEMPTS._levels.clear()


@pytest.fixture(autouse=True)
def failures_of_now_only() -> None:
    """Rows have the same keys in many tests, and one that raised in a test is left out of passes for a while."""
    isolation._failures.clear()


@pytest.fixture(autouse=True)
def checks_of_now_only() -> None:
    RECENT.forget()


@pytest.fixture(autouse=True)
def trees_of_now_only() -> None:
    """Generations are counted from 1 on in every test."""
    past_trees.forget()


@pytest.fixture
def admin(db: None) -> Any:
    return person("ada", superuser=True)


@pytest.fixture
def editor(db: None) -> Any:
    return person("vera", (Grant.Role.EDITOR, "vision"))


@pytest.fixture
def viewer(db: None) -> Any:
    return person("sam", (Grant.Role.VIEWER, "speech"))


@pytest.fixture
def as_admin(admin: Any) -> APIClient:
    return client_of(admin)


@pytest.fixture
def as_editor(editor: Any) -> APIClient:
    return client_of(editor)


@pytest.fixture
def as_viewer(viewer: Any) -> APIClient:
    return client_of(viewer)


@pytest.fixture
def as_nobody(db: None) -> APIClient:
    return APIClient(enforce_csrf_checks=True)


@pytest.fixture
def north(db: None) -> Cluster:
    """A cluster as rows only, with one node of 8 GPUs, 3 of them asked for; nothing listens at its address."""
    now = timezone.now()
    made = Cluster.objects.create(
        name="north", server="https://north.example", access={"token": "hidden"}, state="Ready", state_since=now,
        joined_at=now, synced_at=now, last_heartbeat=now,
    )  # fmt: skip
    offered = {"cpu": 64000, "memory": 2**38, "nvidia.com/gpu": 8, "pods": 110}
    made.nodes.create(name="n1", ready=True, allocatable=offered, requested={"nvidia.com/gpu": 3, "pods": 3})
    return made
