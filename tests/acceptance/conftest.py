"""Statements of what Convoy does, each a test named by its number: 1.2 is TFJobs on Volcano, 1.3 GPU topology, and so on."""

import pytest
from django.utils import timezone

from fleet.services.authorization import access
from tests.cli.builders import Convoy
from tests.support.fixtures import unswept, worker, world
from tests.support.kubectl import served

__all__ = ["unswept", "worker", "world"]


@pytest.fixture
def ada(transactional_db, admin, tmp_path):
    """Stock kubectl against the fleet, as ada."""
    with served(tmp_path) as door:
        yield door.as_user("ada")


@pytest.fixture
def convoy(live_server, admin, tmp_path):
    """The real command, against the real server, as ada."""
    _, token = access.mint(admin, "cli", life=None, now=timezone.now())
    run = Convoy(tmp_path, live_server.url)
    run.env["CONVOY_TOKEN"] = token
    return run
