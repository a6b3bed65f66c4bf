"""The seed's session with a stock kubectl: policy and job applied, watched, described, waited for, deleted."""

import threading

import pytest

from jobs.models import Job
from tests.support.kubectl import served
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ada(world, admin, tmp_path):
    world.member("north", 8)
    with served(tmp_path) as kubectl:
        yield kubectl.as_user("ada")


def test_it_runs_the_seeds_session(world, ada):
    assert "example-policy created" in ada.says("apply", "-f", "-", given=POLICY)
    assert "pytorch-test created" in ada.says("apply", "-f", "-", given=pytorch_job("pytorch-test", duration="1h"))
    world.expect("pytorch-test", "Running")
    header, row = ada.says("get", "pytorchjob").splitlines()
    assert (header.split(), row.split()[:2]) == (["NAME", "STATE", "AGE"], ["pytorch-test", "Running"])
    told = ada.says("describe", "pytorchjob", "pytorch-test")
    line = next(line for line in told.splitlines() if "ScheduleBindingSucceed" in line)
    assert line.split(maxsplit=4)[0] == "Normal" and "default-scheduler" in line
    assert "Binding has been scheduled successfully. Result: {north:0,[{master 1} {worker 2}]}" in line
    assert "north" in ada.says("get", "rb", "pytorch-test-pytorchjob")
    assert "deleted" in ada.says("delete", "pytorchjob", "pytorch-test")
    assert not Job.objects.exists()


def test_it_waits_for_the_end_of_a_job(world, ada):
    ada.says("apply", "-f", "-", given=POLICY)
    ada.says("apply", "-f", "-", given=pytorch_job("llama", duration="20s"))
    assert "condition met" in ada.says("wait", "--for=condition=Succeeded", "pytorchjob/llama", "--timeout=115s")


def test_it_shows_changes_as_they_come(world, ada):
    ada.says("apply", "-f", "-", given=POLICY)
    with ada.running("get", "pytorchjob", "-w", "--no-headers", "--output-watch-events") as watching:
        lines: list[list[str]] = []
        reader = threading.Thread(target=lambda: lines.extend(line.split()[:3] for line in watching.stdout))
        reader.start()
        ada.says("apply", "-f", "-", given=pytorch_job("llama", duration="1h"))
        world.until(lambda: ["MODIFIED", "llama", "Running"] in lines, "the watch shows the job running")
        ada.says("delete", "pytorchjob", "llama")
        world.until(lambda: ["DELETED", "llama"] in [line[:2] for line in lines], "the watch shows the job gone")
    reader.join(60)
    assert lines[0][:2] == ["ADDED", "llama"]
