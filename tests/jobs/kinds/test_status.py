"""A member's status, read: true conditions in the order of finality, not the last one written (training.md T2)."""

import pytest

from jobs.kinds import registry
from jobs.kinds.base import Phase


def phase(kind: str, *conditions: tuple[str, bool], running: int = 0) -> Phase:
    listed = [{"type": name, "status": str(true)} for name, true in conditions]
    api_version = "batch/v1" if kind == "Job" else "kubeflow.org/v1"
    return registry.kind_of(api_version, kind).read_status({"conditions": listed}, running).phase


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([], Phase.CREATED),
        ([("Created", True)], Phase.CREATED),
        ([("Created", True), ("Running", True)], Phase.RUNNING),
        ([("Created", True), ("Running", True), ("Suspended", False)], Phase.RUNNING),
        ([("Created", True), ("Running", False), ("Restarting", True)], Phase.RESTARTING),
        ([("Created", True), ("Running", False), ("Suspended", True)], Phase.SUSPENDED),
        ([("Created", True), ("Succeeded", True), ("Running", False)], Phase.SUCCEEDED),
        ([("Failed", True), ("Succeeded", True)], Phase.FAILED),
    ],
)
def test_it_reads_a_pytorchjob(conditions, expected):
    assert phase("PyTorchJob", *conditions) is expected


def test_it_reads_a_job_as_running_only_when_a_pod_runs():
    assert phase("Job") is Phase.CREATED
    assert phase("Job", running=1) is Phase.RUNNING


def test_it_reads_the_end_of_a_job():
    assert phase("Job", ("Complete", True)) is Phase.SUCCEEDED
    assert phase("Job", ("Failed", True), running=1) is Phase.FAILED
    assert phase("Job", ("Suspended", True)) is Phase.SUSPENDED
