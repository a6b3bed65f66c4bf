"""Fixtures of the stories: a `World` with workers, watcher and beat; and one without, where a test takes each step itself."""

import random
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker, Settings

from fleet.services.watching.manager import WatchManager
from tests.support import emptying
from tests.support.worker import Worker, settle
from tests.support.world import Beat, World


@pytest.fixture(scope="session")
def resting_worker(django_db_setup: None) -> Iterator[Worker]:
    """One for the whole session, started by the first test that wants it: to stop one takes four seconds."""
    with Worker.started() as made:
        yield made


@pytest.fixture(scope="module")
def worker(resting_worker: Worker, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Celery workers in threads, over the real broker; at work for one file, so that others may do without."""
    with resting_worker.at_work():
        yield
    # A task that came after the last test's tables were emptied may have left the scheduler's lease held.
    with django_db_blocker.unblock():
        emptying.empty(connection)


@pytest.fixture
def world(unswept: World) -> Iterator[World]:
    with Beat():
        yield unswept


@pytest.fixture
def unswept(transactional_db: None, worker: None, tmp_path: Path, settings: Settings) -> Iterator[World]:
    """The world without its beat: whatever happens here, happens because of an event."""
    # A member that is away refuses at once; one that a busy machine keeps from answering for seconds is not away.
    settings.CONVOY_MEMBERS = replace(settings.CONVOY_MEMBERS, heartbeat_grace_s=1.0, probe_timeout_s=10.0)
    made = World(tmp_path)
    stop = threading.Event()
    tower = threading.Thread(target=WatchManager(stop, random.Random(0)).run, daemon=True)
    tower.start()
    yield made
    stop.set()
    made.stop(tower.join)
    # A task that went on into the next test would meet its emptied database, and might keep the scheduler's lease there.
    settle()
