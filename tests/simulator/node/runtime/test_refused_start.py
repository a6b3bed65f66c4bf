"""A process pod that may not start yet is tried again until it may: the control plane lists its clusters after its start."""

from pathlib import Path

import pytest

from fleet.kube.resources import PODS
from simulator.node.runtime.isolation import Isolation
from tests.simulator.casting import calling, member, until


def test_it_starts_when_it_is_no_longer_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[str] = []

    def refusal(self: Isolation, namespace: str, scratch: Path) -> str:
        tries.append(namespace)
        return "not yet" if len(tries) < 4 else "for another reason"

    monkeypatch.setattr(Isolation, "refusal", refusal)
    with member(tmp_path) as made, calling(made) as client:
        meta = {"name": "tool", "annotations": {"convoy.dev/run": "process"}}
        spec = {"containers": [{"name": "x", "command": ["true"]}]}
        client.create(PODS.path("default"), {"metadata": meta, "spec": spec})

        def message() -> str:
            states = client.get(PODS.path("default", "tool")).get("status", {}).get("containerStatuses") or [{}]
            return str(states[0].get("state", {}).get("waiting", {}).get("message"))

        until(lambda: message() == "for another reason")
    assert len(tries) >= 4
