"""The check of one group of nodes by torch, where it is installed: NCCL on GPUs, gloo without. One process for each GPU.

``python -m convoy_runtime.torch_check RANK WORLD DEVICE HOST PORT``: multiplies matrices, all-reduces, compares, and prints the
seconds. It ends with an error where anything is not as it must be; `run` gives it a time after which it has failed.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from convoy_runtime.pair_check import CheckFailed, Member

_ELEMENTS = {True: 1 << 24, False: 1 << 18}
_SIZE = {True: 8192, False: 256}
_TIMES = 10


def is_there() -> bool:
    return importlib.util.find_spec("torch") is not None


def devices() -> int:
    """GPUs of this pod, and 1 without; asked in a process of its own, so that none is held here."""
    asked = "import torch; print(torch.cuda.device_count())"
    try:
        answer = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return 1
    words = answer.stdout.split()
    return max(int(words[-1]), 1) if words and words[-1].isdigit() else 1


def run(members: Sequence[Member], me: int, timeout_s: float) -> float:
    """The seconds of this node's slowest process. The port after that of the first node is that of their rendezvous."""
    first, deadline = members[0], time.monotonic() + timeout_s
    begin = sum(member.devices for member in members[: [m.node for m in members].index(me)])
    world = sum(member.devices for member in members)
    own = next(member for member in members if member.node == me)
    command = [sys.executable, "-m", "convoy_runtime.torch_check"]
    place = [str(world), first.host, str(first.port + 1)]
    folder = str(Path(__file__).parent.parent)
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))}
    processes = [
        subprocess.Popen(
            [*command, str(begin + device), str(device), *place],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=found,
        )
        for device in range(own.devices)
    ]
    try:
        return max(_seconds(process, deadline) for process in processes)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _seconds(process: subprocess.Popen[str], deadline: float) -> float:
    try:
        output, errors = process.communicate(timeout=max(deadline - time.monotonic(), 0.1))
        if process.returncode:
            raise CheckFailed(f"torch: {' '.join(errors.split())[-300:]}")
        return float(output.split()[-1])
    except subprocess.TimeoutExpired as e:
        raise CheckFailed("torch: the check takes too long") from e
    except (IndexError, ValueError) as e:
        raise CheckFailed("torch: it has said nothing") from e


def main(rank: int, device: int, world: int, host: str, port: int) -> float:
    torch: Any = importlib.import_module("torch")
    dist: Any = importlib.import_module("torch.distributed")
    has_gpu = bool(torch.cuda.is_available())
    where: Any = torch.device("cuda", device) if has_gpu else torch.device("cpu")
    if has_gpu:
        torch.cuda.set_device(where)
    method = f"tcp://{host}:{port}"
    dist.init_process_group(
        "nccl" if has_gpu else "gloo", init_method=method, world_size=world, rank=rank, timeout=timedelta(seconds=180)
    )
    numbers = torch.full((_ELEMENTS[has_gpu],), float(rank + 1), device=where)
    matrix = torch.eye(_SIZE[has_gpu], device=where, dtype=torch.bfloat16)
    dist.all_reduce(numbers.clone())  # connects; not counted
    began = time.monotonic()
    for _ in range(_TIMES):
        product = matrix @ matrix
        total = numbers.clone()
        dist.all_reduce(total)
    is_right = bool((total == world * (world + 1) / 2).all()) and bool((product == matrix).all())
    seconds = time.monotonic() - began
    if not is_right:
        raise SystemExit("what was computed and received is not what it must be")
    dist.destroy_process_group()
    return seconds


if __name__ == "__main__":
    print(main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], int(sys.argv[5])))
