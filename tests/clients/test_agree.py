"""Four real gloo ranks that leave after the same step, twenty times of twenty, whichever of them was asked to stop."""

import json
import os
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from deploy.bootstrap.home import ROOT
from tests.support.free_ports import free_port

pytestmark = pytest.mark.clients
SCRIPT = Path(__file__).with_name("agree.py")
RANKS, PATIENCE_S = 4, 300.0


def test_four_ranks_leave_after_the_same_step_twenty_times_of_twenty(dlrover: Path) -> None:
    about = {
        "WORLD_SIZE": str(RANKS),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "OMP_NUM_THREADS": "1",
    }
    command = [str(dlrover / "bin" / "python"), str(SCRIPT), "7"]
    ranks = [
        subprocess.Popen(
            command, env={**os.environ, **about, "RANK": str(rank), "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(RANKS)
    ]  # fmt: skip
    try:
        outputs = [rank.communicate(timeout=PATIENCE_S) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [rank.returncode for rank in ranks] == [0] * RANKS, [error[-500:] for _, error in outputs]
    steps: dict[int, set[int]] = defaultdict(set)
    lines = [json.loads(line) for output, _ in outputs for line in output.splitlines()]
    for line in lines:
        steps[line["try"]].add(line["step"])
    assert len(lines) == RANKS * 20 and all(len(each) == 1 for each in steps.values()), steps
