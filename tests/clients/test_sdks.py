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
