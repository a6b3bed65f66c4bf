"""Every operation of the REST contract meets requests made from the contract: no answer is 5xx, each has the shape it promises.

Through the application in process, as a fleet admin, over a small fleet; a few examples an operation, the same each time.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from django.utils import timezone
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

from fleet.services import access
from jobs.models import Job
from tests.support.books import a_cluster, apply, cycle
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db

CHECKS = [not_a_server_error, response_schema_conformance, content_type_conformance]
FEW = settings(
    max_examples=6,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
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
    a_cluster("north")
    apply(pytorch_job("llama"))
    cycle()
    return {"Authorization": f"Bearer {access.mint(admin, 'fuzz', life=None, now=timezone.now())[1]}"}


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.label)
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda each: each.value)
def test_it_keeps_its_word(operation: Any, mode: GenerationMode, headers: dict[str, str]) -> None:
    """An operation that takes nothing cannot be asked wrongly."""
    job = str(Job.objects.get().uid)
    there = {"name": "north", "node": "north-0", "username": "ada", "id": job if "job" in operation.path else "1"}

    @FEW
    @given(operation.as_strategy(generation_mode=mode), st.booleans())
    def ask(case: Any, known: bool) -> None:
        if known:
            case.path_parameters = {name: there[name] for name in case.path_parameters}
        case.validate_response(case.call(headers=headers, app=APPLICATION), checks=CHECKS)

    with suppress(Unsatisfiable):
        ask()
