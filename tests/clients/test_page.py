"""The Python of docs/clients.md that needs SDKs, as it is written there, run by the interpreter that has them."""

import subprocess

import pytest

from deploy.bootstrap.home import ROOT
from tests.clients.environments import environment
from tests.docs import unrun
from tests.docs.pages import blocks
from tests.support.kubectl import served

pytestmark = [pytest.mark.clients, pytest.mark.django_db(transaction=True)]
EXAMPLES = ROOT / "docs" / "examples"
BLOCKS = [block for block in blocks(ROOT / "docs" / "clients.md") if "test_page.py" in unrun.reason(block.name)]


def test_the_blocks_of_the_page_run_as_they_are_written(world, admin, tmp_path):
    python = environment("sdks") / "bin" / "python"
    runtime = (EXAMPLES / "trainingruntime.yaml").read_text().replace("duration: 20s", "duration: 1h")
    job = (ROOT / "deploy" / "demo" / "pytorchjob.yaml").read_text()
    world.member("north", 16)
    world.apply((EXAMPLES / "policy.yaml").read_text(), runtime, job)
    world.expect("pytorch-test", "Running")
    (tmp_path / ".convoy").mkdir()
    with served(tmp_path) as kubectl:
        (tmp_path / ".convoy" / "kubeconfig").write_bytes(kubectl.as_user("ada").file.read_bytes())
        text = "\n".join(block.text for block in BLOCKS)
        done = subprocess.run(
            [python, "-c", text], cwd=tmp_path, capture_output=True, text=True, timeout=180, check=False
        )
    assert len(BLOCKS) == 3 and done.returncode == 0, done.stderr[-4000:]
    *_, by_training, by_kr8s, by_lightkube = done.stdout.splitlines()
    assert "pytorch-test-master-0.north" in by_training
    assert by_kr8s == by_lightkube and "pytorch-test-master-0.north" in by_kr8s
