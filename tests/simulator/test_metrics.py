"""A simulated member says what its nodes and pods use, and stock ``kubectl top`` shows it."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from simulator.controller_manager import Shape
from simulator.member import SimulatedMember
from simulator.node.nodes import Pool

KUBECTL = Path(sys.executable).with_name("kubectl")
POD = """
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default, labels: {app: train}, annotations: {convoy.dev/duration: 1h}}
spec: {containers: [{name: main, image: i, resources: {requests: {cpu: "4", memory: 8Gi}}}]}
"""


@pytest.fixture
def kubectl(tmp_path):
    made = SimulatedMember("north", tmp_path / "north", Shape((Pool("pool", 1, "64", "512Gi", 8),), {}), time_scale=20)
    made.start()
    (tmp_path / "config").write_text(yaml.safe_dump(made.kubeconfig()))
    base = [str(KUBECTL), "--kubeconfig", str(tmp_path / "config"), "--cache-dir", str(tmp_path / "cache")]

    def run(*words, text=""):
        done = subprocess.run([*base, *words], input=text, capture_output=True, text=True, timeout=120, check=False)
        return done.stdout + done.stderr

    yield run
    made.stop()


def test_it_measures_nodes_and_running_pods(kubectl):
    kubectl("apply", "-f", "-", text=POD)
    deadline = time.monotonic() + 120
    while "main" not in (told := kubectl("top", "pod", "--containers", "-l", "app=train")):
        assert time.monotonic() < deadline, told
        time.sleep(0.2)
    cores = int(told.splitlines()[1].split()[2].removesuffix("m"))
    assert 2200 <= cores < 3800
    assert told == kubectl("top", "pod", "--containers", "-l", "app=train")
    node = kubectl("top", "node").splitlines()[1].split()
    assert node[0] == "north-pool-0" and int(node[1].removesuffix("m")) == cores + 200
    assert "not found" in kubectl("top", "pod", "nobody")
    assert "Running" in kubectl("get", "pods")
