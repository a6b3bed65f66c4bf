"""TorchX, unmodified, with its scheduler `kubernetes`: makes a Volcano Job at the fleet, follows it, reads its log, cancels it.

Real: Convoy's services and API server, and the `torchx` command. Simulated: the member with its Volcano.
"""

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from jobs.models import Job
from tests.clients.environments import environment
from tests.support.kubectl import served

pytestmark = [pytest.mark.clients, pytest.mark.django_db(transaction=True)]
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
OPTIONS = ("-s", "kubernetes", "-cfg", "namespace=default,queue=default", "--workspace=")
ECHO = ("utils.echo", "--image", "alpine:3", "--msg", "hello", "--num_replicas", "2")


def torchx(kubeconfig: Path, folder: Path, *words: str) -> str:
    command = [environment("torchx") / "bin" / "torchx", *words]
    env = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(folder)}
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=folder, timeout=120, check=False)
    assert done.returncode == 0, f"{words}\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
    return done.stdout


def test_it_runs_follows_reads_and_cancels_a_job(world, admin, tmp_path):
    world.member("north", 8)
    policy = yaml.safe_load((EXAMPLES / "policy.yaml").read_text())
    world.apply(yaml.safe_dump(policy))
    with served(tmp_path) as kubectl:
        file = kubectl.as_user("ada").file
        app = torchx(file, tmp_path, "run", *OPTIONS, *ECHO).strip().splitlines()[-1]
        name = app.rpartition(":")[2]
        assert app == f"kubernetes://torchx/default:{name}" and Job.objects.get().name == name
        world.expect(name, "Running")
        world.until(lambda: "RUNNING" in torchx(file, tmp_path, "status", app), "it says that the job runs")
        assert "RUNNING" in torchx(file, tmp_path, "list", "-s", "kubernetes")
        assert torchx(file, tmp_path, "log", f"{app}/echo/0").strip()
        torchx(file, tmp_path, "cancel", app)
    world.until(lambda: not Job.objects.exists() and not world.pods("north"), "the job and its pods are gone")
