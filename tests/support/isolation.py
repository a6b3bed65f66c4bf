"""Which tests need a machine that can isolate the processes of pods."""

import tempfile
from pathlib import Path

import pytest

from simulator.node.runtime.isolation import Isolation, Policy, View
from simulator.node.runtime.network import MemberNetwork


def _fault() -> str:
    with tempfile.TemporaryDirectory() as folder:
        return Isolation(View.of({}, Path(folder)), Policy()).refusal("default", Path(folder))


FAULT = _fault()
needs_isolation = pytest.mark.skipif(bool(FAULT), reason=FAULT)


def _network_fault() -> str:
    network = MemberNetwork(19, "https://127.0.0.1:1")
    try:
        return FAULT or network.fault
    finally:
        network.close()


NETWORK_FAULT = _network_fault()
needs_network = pytest.mark.skipif(bool(NETWORK_FAULT), reason=f"no network for pods: {NETWORK_FAULT}")
