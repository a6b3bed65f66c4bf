"""A node that is taken back: first a word, then nothing of it is left, and it may come back."""

from pathlib import Path

import pytest

from fleet.kube.resources import NODES
from simulator.fault_parser import BadFault, parse
from tests.simulator.casting import calling, expect, member, nodes, phases, pytorch_job, submit, until


def names(client) -> set[str]:
    return {node["metadata"]["name"] for node in client.list(NODES.path())["items"]}


def test_it_says_so_then_goes_with_its_pods_and_comes_back_without_the_word(tmp_path: Path) -> None:
    with member(tmp_path) as made, calling(made) as client:
        submit(client, pytorch_job(gpus=8, workers=1))
        expect(client, "llama", "Running")
        at = nodes(client)["llama-worker-0"]
        made.disturb(parse(["reclaim", at, "50s"]))
        (taint,) = client.get(NODES.path(name=at))["spec"]["taints"]
        assert (taint["key"], taint["effect"]) == ("convoy.dev/reclaim", "NoSchedule")
        assert phases(client)["llama-worker-0"] == "Running"
        until(lambda: at not in names(client))
        until(lambda: phases(client).get("llama-worker-0") == "Pending")
        made.disturb(parse(["node-up", at]))
        assert not client.get(NODES.path(name=at))["spec"].get("taints")
        expect(client, "llama", "Running")


def test_it_refuses_a_node_that_is_not_there(tmp_path: Path) -> None:
    with member(tmp_path) as made, pytest.raises(BadFault):
        made.disturb(parse(["reclaim", "nowhere"]))
