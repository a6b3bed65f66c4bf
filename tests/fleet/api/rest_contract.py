"""The REST contract, read from docs/openapi.json, and a small fleet to hold it against."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from django.utils import timezone

from fleet.member.client import Access
from fleet.services.authorization import access
from fleet.services.members import member_clients
from tests.support.books import a_cluster, apply, cycle
from tests.support.world import pytorch_job

APPLICATION = get_wsgi_application()
SCHEMA = schemathesis.openapi.from_path("docs/openapi.json")
OPERATIONS = [found.ok() for found in SCHEMA.get_all_operations()]


@pytest.fixture(autouse=True)
def one_connection() -> Iterator[None]:
    """The test's own, as Django's test client keeps it: a request ends with closing what is old."""
    request_started.disconnect(close_old_connections)
    request_finished.disconnect(close_old_connections)
    yield
    request_started.connect(close_old_connections)
    request_finished.connect(close_old_connections)


@pytest.fixture
def headers(admin: Any) -> dict[str, str]:
    north = a_cluster("north")
    north.access = member_clients.stored(Access("https://127.0.0.1:1"))  # nothing listens there
    north.save()
    apply(pytorch_job("llama"))
    cycle()
    return {"Authorization": f"Bearer {access.mint(admin, 'fuzz', life=None, now=timezone.now())[1]}"}
