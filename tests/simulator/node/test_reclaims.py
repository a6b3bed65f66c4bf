"""A node that is taken back: first a word, then nothing of it is left, and it may come back."""

from pathlib import Path

import pytest

from fleet.kube.resources import NODES, PODS
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


def test_a_pod_that_trains_saves_on_sigterm_and_the_others_go_on_from_there(tmp_path: Path) -> None:
    notes = {"step_seconds": "1", "save_seconds": "20"}
    with member(tmp_path / "north") as made, calling(made) as client:
        submit(client, pytorch_job(gpus=1, workers=2, **notes))
        expect(client, "llama", "Running")  # as soon as its master does
        until(lambda: set(phases(client).values()) == {"Running"})
        path = PODS.path("default", "llama-worker-1")
        client.merge_patch(path, {"metadata": {"finalizers": ["example.com/looked-at"]}})
        client.delete(path, grace_s=30)
        log, _ = made.read("default", "llama-worker-0", 0)
        until(lambda: b"llama-worker-1 saved step" in made.read("default", "llama-worker-0", 0)[0])
        assert made.read("default", "llama-worker-0", 0)[0].startswith(log)
        step = client.get(path)["metadata"]["annotations"]["convoy.dev/saved-step"]
        assert (
            f"saved step {step} and left: 2 workers go on from step {step}".encode()
            in made.read("default", "llama-worker-0", 0)[0]
        )
