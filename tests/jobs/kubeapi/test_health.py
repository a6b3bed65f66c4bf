"""The health that Argo CD and Flux read from jobs of the fleet, by the rules that they publish, which are restated here.

Argo CD 3: its check of batch Jobs, and its script of SparkApplications. Flux: kstatus, its library. A field that a rule reads
without asking for it must be there: a script that fails makes an application's health unknown.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from jobs.models import Job
from jobs.services.submission import manifests, submit
from tests.support.kubectl import served

pytestmark = pytest.mark.django_db(transaction=True)
EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
Rule = Callable[[dict[str, Any]], str]
STATES = ("Queued", "Dispatched", "Running", "Moving", "Suspended", "Succeeded", "Failed")


def argo_batch_job(obj: dict[str, Any]) -> str:
    """A condition counts by being there, but for Suspended, whose status is asked as well."""
    conditions = {each["type"]: each["status"] for each in obj["status"].get("conditions") or []}
    if not conditions.keys() & {"Failed", "Complete", "Suspended"}:
        return "Progressing"
    if "Failed" in conditions:
        return "Degraded"
    return "Suspended" if conditions.get("Suspended") == "True" else "Healthy"


def argo_spark(obj: dict[str, Any]) -> str:
    state = obj["status"]["applicationState"].get("state")
    if state == "RUNNING":
        executors = obj["status"].get("executorState")
        running = sum(each == "RUNNING" for each in (executors or {}).values())
        all_run = executors is not None and running == obj["spec"]["executor"]["instances"]
        return "Healthy" if all_run else "Progressing"
    if state in ("FAILED", "SUBMISSION_FAILED", "FAILING"):
        return "Degraded"
    return "Healthy" if state == "COMPLETED" else "Progressing"


def flux_generic(obj: dict[str, Any]) -> str:
    """Of kinds that kstatus has no rule for: generation, then the standard conditions; without them it is Current."""
    if (observed := obj["status"].get("observedGeneration")) is not None and observed != obj["metadata"]["generation"]:
        return "InProgress"
    conditions = {each["type"]: each["status"] for each in obj["status"].get("conditions") or []}
    if conditions.get("Reconciling") == "True" or conditions.get("Ready") in ("False", "Unknown"):
        return "InProgress"
    return "Failed" if conditions.get("Stalled") == "True" else "Current"


def flux_batch_job(obj: dict[str, Any]) -> str:
    """A Job is Current as soon as it has begun, Failed by its condition, and in progress before."""
    conditions = {each["type"]: each["status"] for each in obj["status"].get("conditions") or []}
    if conditions.get("Failed") == "True":
        return "Failed"
    if "True" in (conditions.get("Complete"), conditions.get("Suspended")):
        return "Current"
    return "Current" if obj["status"].get("startTime") else "InProgress"


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
