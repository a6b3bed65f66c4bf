"""Which tests need a machine that can isolate the processes of pods."""

import tempfile
from pathlib import Path

import pytest

from simulator.node.isolation import Isolation, Policy, View


def _fault() -> str:
    with tempfile.TemporaryDirectory() as folder:
        return Isolation(View.of({}, Path(folder)), Policy()).refusal("default", Path(folder))


FAULT = _fault()
needs_isolation = pytest.mark.skipif(bool(FAULT), reason=FAULT)
