"""Which node a simulated pod wishes for."""

import pytest

from simulator.scheduler.ranks import wished


def pod(index: int, text: str = "a*2 b", **labels: str) -> dict:
    metadata = {"name": f"llama-worker-{index}", "labels": labels, "annotations": {"convoy.dev/ranks": text}}
    return {"metadata": metadata, "spec": {}}


@pytest.mark.parametrize(("index", "node"), [(0, "a"), (1, "a"), (2, "b"), (3, "")])
def test_the_nth_pod_of_a_role_wishes_for_the_nth_node(index: int, node: str) -> None:
    assert wished(pod(index)) == node


def test_a_label_tells_the_number_better_than_the_name() -> None:
    assert wished(pod(0, **{"training.kubeflow.org/replica-index": "2"})) == "b"


def test_a_pod_without_a_list_wishes_for_nothing() -> None:
    assert wished(pod(0, "")) == ""
