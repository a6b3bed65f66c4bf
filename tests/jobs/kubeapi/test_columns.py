"""What stock kubectl prints of every kind in every state: upstream's columns, and the fleet's truth in them."""

from pathlib import Path

import pytest
import yaml
from django.utils import timezone

from jobs.models import Job
from jobs.services.submission import manifests, submit
from tests.support.kubectl import served

pytestmark = pytest.mark.django_db(transaction=True)
EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
NOW = "2026-11-01T10:00:00Z"
STATES = ("Queued", "Dispatched", "Running", "Reclaiming", "Moving", "Backoff", "Suspended", "Succeeded", "Failed")


def words(*told: str) -> dict[str, str]:
    return dict(zip(STATES, told, strict=True))


CONDITIONS = words(
    *("Created", "Created", "Running", "Running", "Created", "Restarting", "Suspended", "Succeeded", "Failed")
)
RUNS = {"conditions": [{"type": "Running", "status": "True"}]}
KINDS = {
    "tfjob": ("NAME STATE AGE", "STATE", RUNS, CONDITIONS),
    "paddlejob": ("NAME STATE AGE", "STATE", RUNS, CONDITIONS),
    "xgboostjob": ("NAME STATE AGE", "STATE", RUNS, CONDITIONS),
    "jaxjob": ("NAME STATE AGE", "STATE", RUNS, CONDITIONS),
    "mpijob": ("NAME STATE AGE", "STATE", RUNS, CONDITIONS),
    "mpijob-v1": ("NAME STATE AGE", "STATE", RUNS, CONDITIONS),
    "trainingjob": ("NAME PHASE AGE", "PHASE", {"phase": "Running"}, CONDITIONS),
    "elasticjob": ("NAME PHASE AGE", "PHASE", {"phase": "Running"}, {**CONDITIONS, "Backoff": "Running"}),
    "rayjob": (
        "NAME JOB STATUS DEPLOYMENT STATUS RAY CLUSTER NAME START TIME END TIME AGE",
        "DEPLOYMENT STATUS",
        {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING"},
        words(
            *("Initializing", "Initializing", "Running", "Running", "Initializing", "Retrying", "Suspended"),
            *("Complete", "Failed"),
        ),
    ),
    "jobset": (
        "NAME TERMINALSTATE RESTARTS COMPLETED SUSPENDED AGE",
        "TERMINALSTATE",
        {"restarts": 0},
        words("", "", "", "", "", "", "", "Completed", "Failed"),
    ),
    "trainjob": ("NAME STATE AGE", "STATE", {}, {**CONDITIONS, "Succeeded": "Complete"}),
    "sparkapplication": (
        "NAME SUSPEND STATUS ATTEMPTS START FINISH AGE",
        "STATUS",
        {"applicationState": {"state": "RUNNING"}},
        words("", "", "RUNNING", "RUNNING", "", "PENDING_RERUN", "SUSPENDED", "COMPLETED", "FAILED"),
    ),
    "volcanojob": (
        "NAME STATUS MINAVAILABLE RUNNINGS AGE",
        "STATUS",
        {"state": {"phase": "Running"}, "running": 3, "minAvailable": 3},
        words(
            *("Pending", "Pending", "Running", "Running", "Pending", "Restarting", "Aborted", "Completed", "Failed"),
        ),
    ),
}
BATCH = words("Pending", "Pending", "Running", "Running", "Pending", "Running", "Suspended", "Complete", "Failed")


@pytest.fixture
def kubectl(admin, tmp_path):
    with served(tmp_path) as door:
        yield door.as_user("ada")


def applied(text: str) -> str:
    runtime = (EXAMPLES / "trainingruntime.yaml").read_text()
    submit.apply(manifests.parse(f"{runtime}\n---\n{text}".encode()), by="test", now=timezone.now())
    job = Job.objects.get()
    group, version = job.api_version.split("/")
    return f"{job.kind.lower()}s.{version}.{group}"


def cell(printed: str, column: str) -> str:
    """Cells stand under their heads."""
    header, row = printed.splitlines()
    start = header.index(column)
    return row[start:].split("   ")[0].strip() if row[start : start + 1].strip() else ""


def test_every_example_is_printed_here():
    examples = {path.stem for path in EXAMPLES.glob("*.yaml")}
    assert examples - {"policy", "job", "trainingruntime"} == set(KINDS)


@pytest.mark.parametrize("example", KINDS)
def test_each_kind_is_printed_in_its_own_columns_with_the_state_it_is_in(kubectl, example):
    header, column, ran, expected = KINDS[example]
    plural = applied((EXAMPLES / f"{example}.yaml").read_text())
    for state, word in expected.items():
        Job.objects.update(state=state, status=ran, suspended=state == "Suspended")
        printed = kubectl.says("get", plural)
        assert printed.splitlines()[0].split() == header.split()
        assert (state, cell(printed, column)) == (state, word)


def test_a_batch_job_is_printed_as_kubectl_prints_it(kubectl):
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "sweep"}}
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "x", "image": "i"}]}}
    plural = applied(yaml.safe_dump({**job, "spec": {"completions": 4, "parallelism": 2, "template": template}}))
    status = {"startTime": NOW, "completionTime": "2026-11-01T10:01:30Z", "succeeded": 3, "active": 1}
    for state, word in BATCH.items():
        Job.objects.update(state=state, status=status, suspended=state == "Suspended")
        printed = kubectl.says("get", plural)
        assert printed.splitlines()[0].split() == ["NAME", "STATUS", "COMPLETIONS", "DURATION", "AGE"]
        off = state in Job.OFF_MEMBER
        told = [cell(printed, name) for name in ("STATUS", "COMPLETIONS", "DURATION")]
        assert (state, told) == (state, [word, "0/4" if off else "3/4", "" if off else "90s"])


ENDS = {"job": "Complete", "jobset": "Completed", "trainjob": "Complete", "rayjob": "Succeeded"}


@pytest.mark.parametrize(("example", "condition"), ENDS.items())
def test_the_end_of_a_job_can_be_waited_for_by_the_condition_of_its_kind(kubectl, example, condition):
    plural = applied((EXAMPLES / f"{example}.yaml").read_text())
    Job.objects.update(state="Succeeded", status={}, finished_at=timezone.now())
    name = Job.objects.get().name
    assert "condition met" in kubectl.says("wait", plural, name, f"--for=condition={condition}", "--timeout=5s")


def test_a_running_trainjob_has_no_conditions_as_with_its_own_controller(kubectl):
    plural = applied((EXAMPLES / "trainjob.yaml").read_text())
    Job.objects.update(state="Running", status={})
    assert kubectl.says("get", plural, "-o", "jsonpath={.items[*].status.conditions}") == "[]"


def test_a_running_job_of_every_kind_can_be_waited_for(kubectl):
    plural = applied((EXAMPLES / "elasticjob.yaml").read_text())
    Job.objects.update(state="Running", status={"phase": "Running"})
    assert "condition met" in kubectl.says("wait", plural, "llama", "--for=condition=Running", "--timeout=5s")
