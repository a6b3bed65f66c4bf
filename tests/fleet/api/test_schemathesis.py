"""Every operation of the REST contract meets requests made from the contract: no answer is 5xx, each has the shape it promises.

Through the application in process, as a fleet admin, over a small fleet; a few examples an operation, the same each time.
"""

from contextlib import suppress
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

from jobs.models import Job
from tests.fleet.api.rest_contract import APPLICATION, OPERATIONS, headers, one_connection

pytestmark = pytest.mark.django_db
__all__ = ["headers", "one_connection"]


def fails_only_for_a_member_that_is_away(context: Any, response: Any, case: Any) -> bool | None:
    return None if response.status_code == 503 else not_a_server_error(context, response, case)


CHECKS = [fails_only_for_a_member_that_is_away, response_schema_conformance, content_type_conformance]
FEW = settings(
    max_examples=6,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


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
        # Each request by itself: the test is one transaction, which PostgreSQL ends at the first value it refuses.
        before = transaction.savepoint()
        case.validate_response(case.call(headers=headers, app=APPLICATION), checks=CHECKS)
        transaction.savepoint_rollback(before)

    with suppress(Unsatisfiable):
        ask()
