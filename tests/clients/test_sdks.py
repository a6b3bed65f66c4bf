"""SDKs nobody here wrote, unmodified, against the fleet: the Kubeflow Training SDK and kr8s find a job's pods and their logs.

Real: Convoy's services, watches and API server, and the clients. Simulated: the member.
"""

import json
import subprocess
from pathlib import Path

import pytest

from tests.clients.environments import environment
from tests.support.kubectl import served
from tests.support.world import POLICY

pytestmark = [pytest.mark.clients, pytest.mark.django_db(transaction=True)]
SCRIPT = Path(__file__).with_name("follow_job.py")
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
RUNTIME = (EXAMPLES / "trainingruntime.yaml").read_text().replace("duration: 20s", "duration: 1h")
TRAIN_JOBS = (EXAMPLES / "policy.yaml").read_text()


def test_they_make_a_job_and_read_its_pods_and_logs(world, admin, tmp_path):
    python = environment("sdks") / "bin" / "python"
    world.member("north", 8)
    world.apply(POLICY)
    with served(tmp_path) as kubectl:
        command = [python, SCRIPT, kubectl.as_user("ada").file]
        done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    said = json.loads(done.stdout.splitlines()[-1])
    pods = ["from-sdk-master-0.north", "from-sdk-worker-0.north", "from-sdk-worker-1.north"]
    assert (said["names"], said["kr8s"], said["masters"]) == (pods, pods, pods[:1])
    assert said["phases"] == ["Running"] and said["logs"] == {pods[0]: True} and said["kr8s log"]
    world.until(lambda: not world.pods("north"), "its pods are gone")


def test_the_trainer_client_trains_by_a_runtime_of_the_fleet(world, admin, tmp_path):
    python = environment("sdks") / "bin" / "python"
    world.member("north", 8)
    world.apply(RUNTIME, TRAIN_JOBS)
    with served(tmp_path) as kubectl:
        command = [python, SCRIPT.with_name("train_job.py"), kubectl.as_user("ada").file]
        done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    said = json.loads(done.stdout.splitlines()[-1])
    pods = [pod for _, _, pod in said["steps"]]
    assert [(step, state) for step, state, _ in said["steps"]] == [("node-0", "Running"), ("node-1", "Running")]
    assert (said["runtimes"], said["jobs"], said["log"]) == (["torch-distributed"], [True], True)
    assert said["lightkube"] == {"nodes": 2, "pods": sorted(pods), "log": True}
    assert "SyncWorkSucceed" in said["reasons"]
    world.until(lambda: not world.pods("north"), "its pods are gone")
