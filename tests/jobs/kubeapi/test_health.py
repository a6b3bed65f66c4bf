"""The health that Argo CD and Flux read from jobs of the fleet, by their published rules as `tests/support` restates them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from jobs.models import Job
from jobs.services.submission import manifests, submit
from tests.support.health_rules import argo_batch_job, argo_spark, flux_batch_job, flux_generic
from tests.support.kubectl import served

pytestmark = pytest.mark.django_db(transaction=True)
EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
Rule = Callable[[dict[str, Any]], str]
STATES = ("Queued", "Dispatched", "Running", "Moving", "Suspended", "Succeeded", "Failed")


PROGRESSING = dict.fromkeys(("Queued", "Dispatched", "Running", "Moving"), "Progressing")
RAN = {"startTime": "2026-11-01T10:00:00Z", "active": 1}
SPARK_RAN = {"applicationState": {"state": "RUNNING"}, "executorState": {"a-1": "RUNNING", "a-2": "RUNNING"}}
CASES: dict[str, tuple[Rule, str, dict[str, Any], dict[str, str]]] = {
    "argo cd, job": (
        argo_batch_job, "job", RAN,
        {**PROGRESSING, "Suspended": "Suspended", "Succeeded": "Healthy", "Failed": "Degraded"},
    ),
    "argo cd, sparkapplication": (
        argo_spark, "sparkapplication", SPARK_RAN,
        {**PROGRESSING, "Running": "Healthy", "Suspended": "Progressing", "Succeeded": "Healthy", "Failed": "Degraded"},
    ),
    "flux, job": (
        flux_batch_job, "job", RAN,
        {"Queued": "InProgress", "Dispatched": "Current", "Running": "Current", "Moving": "Current",
         "Suspended": "Current", "Succeeded": "Current", "Failed": "Failed"},
    ),
    "flux, tfjob": (
        flux_generic, "tfjob", {"conditions": [{"type": "Running", "status": "True"}]}, dict.fromkeys(STATES, "Current")
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def door(tmp_path_factory):
    with served(tmp_path_factory.mktemp("door")) as door:
        yield door


@pytest.mark.parametrize("case", CASES)
def test_the_health_of_a_job_is_what_the_fleet_knows_in_every_state(admin, door, case):
    rule, example, ran, expected = CASES[case]
    submit.apply(manifests.parse((EXAMPLES / f"{example}.yaml").read_bytes()), by="test", now=timezone.now())
    job = Job.objects.get()
    plural, kubectl = f"{job.kind.lower()}s.{job.api_version.rpartition('/')[0]}", door.as_user("ada")
    health = {}
    for state in STATES:
        Job.objects.update(state=state, status=ran, suspended=state == "Suspended", finished_at=timezone.now())
        health[state] = rule(json.loads(kubectl.says("get", plural, job.name, "-o", "json")))
    assert health == expected
