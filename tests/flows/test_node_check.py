"""The node check of a gang in pods that are real processes: the pods check each other, and the gang leaves a faulty node."""

import pytest
import yaml

from fleet.models import NodeExclusion
from tests.support.isolation import needs_network
from tests.support.world import POLICY, World, pytorch_job

pytestmark = [pytest.mark.django_db(transaction=True), needs_network]

FAULTY = """\
import os, socket
if os.environ.get("NODE") == "north-pool1-0":
    right = socket.socket.sendall
    socket.socket.sendall = lambda self, data: right(self, data if len(data) < 4096 else data[:-1] + bytes([data[-1] ^ 1]))
"""
"""Every Python of the pods begins with it: one node flips a bit of what it sends."""
CODE = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "network"},
    "data": {"sitecustomize.py": FAULTY},
}


def checked_job() -> str:
    body = yaml.safe_load(pytorch_job("llama", duration="10h", **{"convoy.dev/run": "process"}))
    body["metadata"]["annotations"] = {"convoy.dev/node-check": "Faulty"}
    for role in body["spec"]["pytorchReplicaSpecs"].values():
        spec = role["template"]["spec"]
        spec["volumes"] = [{"name": "network", "configMap": {"name": "network"}}]
        node = {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
        spec["containers"][0] |= {
            "command": ["sleep", "1000"],
            "env": [node, {"name": "PYTHONPATH", "value": "/network"}],
            "volumeMounts": [{"name": "network", "mountPath": "/network"}],
        }
    return yaml.safe_dump(body)


def passed(world: World) -> list[str]:
    """What the checks of the second cluster say of its nodes."""
    logs = (world.home / "south" / "logs").glob("*/convoy-node-check.*.log")
    return [line for log in logs for line in log.read_text().splitlines() if '"verdict":"ok"' in line.replace(" ", "")]


def test_a_gang_leaves_the_node_that_fails_the_check_and_trains_on_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONVOY_PROCESS_PODS", "*")
    world.member("north", 1, 1, 1)
    world.apply(POLICY, yaml.safe_dump(CODE), checked_job())
    world.until(NodeExclusion.objects.exists, "a node is excluded")
    [row] = NodeExclusion.objects.all()
    assert row.node == "north-pool1-0" and row.job_uid == world.job("llama").uid
    assert "with nodes that work" in row.message, row.message
    world.member("south", 1, 1, 1)
    world.expect("llama", "Running", on="south")
    assert world.job("llama").attempt > 1 and len(passed(world)) == 3
