"""What an operator reads at 3 a.m.: one log line a cycle and the numbers of waiting, admission, preemption and dispatch."""

import pytest
import yaml
from django.test import Client
from structlog.testing import capture_logs

from jobs.services.scheduling.cycle_report import STEPS
from tests.support.quotas import GPU, PLENTY, apply_tree, gpus, leaf
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
LABEL = "quota.scheduling.alibabacloud.com/name"


def job(name: str, queue: str) -> str:
    body = yaml.safe_load(pytorch_job(name, workers=3, duration="10h"))
    body["metadata"] |= {"labels": {LABEL: queue}, "annotations": {"convoy.dev/checkpoint-grace": "1"}}
    return yaml.safe_dump(body)


def served() -> dict[str, float]:
    """Every sample of ``/metrics`` by its text, such as ``convoy_jobs{state="Queued"}``."""
    lines = Client().get("/metrics").content.decode().splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[:1] != "#")}


def grown(before: dict[str, float], after: dict[str, float], name: str) -> float:
    return after.get(name, 0.0) - before.get(name, 0.0)


def cycles_in(lines):
    return [line for line in lines if line["event"] == "scheduling cycle"]


def attempts(before: dict[str, float], after: dict[str, float]) -> float:
    return sum(grown(before, after, name) for name in after if name.startswith("convoy_admission_attempts_total"))


@pytest.fixture
def preempted(unswept):
    """Borrower ``young`` of b makes room for ``mine`` of a; the lines logged meanwhile and the samples before and after."""
    after: dict[str, float] = {}
    with capture_logs() as lines:
        # Before anything requests a cycle: one that ends meanwhile would be in the lines or the numbers alone.
        before = served()
        unswept.member("north", 8)
        apply_tree(leaf("a", **gpus(4, 8)), leaf("b", **gpus(4, 8)), total={**PLENTY, GPU: 8})
        unswept.apply(POLICY, job("old", "b"))
        unswept.expect("old", "Running")
        unswept.apply(job("young", "b"))
        unswept.expect("young", "Running")
        unswept.apply(job("mine", "a"))
        unswept.expect("mine", "Running")
        unswept.expect("young", "Queued")

        def all_are_logged() -> bool:
            """A cycle may end between the look at the numbers and the one at the lines."""
            after.update(served())
            return len(cycles_in(lines)) == attempts(before, after)

        unswept.until(all_are_logged, "each cycle that is counted has a line")
    return lines, before, after


def test_it_counts_what_was_admitted_preempted_and_sent(preempted):
    _, before, after = preempted
    for name, count in {
        'convoy_admitted_workloads_total{queue="root/a"}': 1,
        'convoy_admitted_workloads_total{queue="root/b"}': 2,
        'convoy_admission_wait_time_seconds_count{queue="root/a"}': 1,
        'convoy_preempted_workloads_total{queue="root/b",reason="AboveMin"}': 1,
        'convoy_evicted_workloads_total{queue="root/b",reason="Preempted"}': 1,
        'convoy_placement_to_dispatch_seconds_count{cluster="north"}': 3,
    }.items():
        assert grown(before, after, name) == count, (name, [key for key in after if key[:20] == name[:20]])
    for name in (
        'convoy_admission_attempts_total{result="success"}',
        'convoy_admission_cycle_step_duration_seconds_count{step="plan"}',
        'convoy_dispatch_duration_seconds_count{cluster="north",result="done"}',
        'convoy_member_request_duration_seconds_count{cluster="north",code="201",verb="POST"}',
        'convoy_task_duration_seconds_count{task="jobs.push"}',
    ):
        assert grown(before, after, name) >= 1, name


def test_it_shows_what_waits_and_what_each_queue_uses_and_borrows(preempted):
    _, _, after = preempted
    assert after['convoy_pending_workloads{queue="root/b",status="active"}'] == 1
    assert after['convoy_queue_resource_usage{queue="root/a",resource="nvidia.com/gpu"}'] == 4
    assert after['convoy_queue_nominal_quota{queue="root/b",resource="nvidia.com/gpu"}'] == 4
    assert after['convoy_queue_borrowed{queue="root/b",resource="nvidia.com/gpu"}'] == 0
    assert after['convoy_queue_requested{queue="root/b",resource="nvidia.com/gpu"}'] == 8


def test_it_logs_one_line_for_each_cycle_with_what_it_decided(preempted):
    lines, before, after = preempted
    cycles = cycles_in(lines)
    assert len(cycles) == attempts(before, after)
    assert sum(line["placed"] for line in cycles) == 3 and sum(line["preempted"] for line in cycles) == 1
    assert {"epoch", "waiting", "total_ms", *(f"{step}_ms" for step in STEPS)} <= cycles[0].keys()


def test_it_logs_a_preemption_with_the_job_its_preemptor_and_the_reason(preempted):
    [line] = [line for line in preempted[0] if line["event"] == "preempted"]
    assert line["job"] == "PyTorchJob default/young" and line["preemptor"] == "default/mine"
    assert (line["attempt"], line["reason"]) == (1, "AboveMin")
