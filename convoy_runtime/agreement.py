"""One answer for all ranks, so that all leave after the same step and their checkpoint is of one step."""

from __future__ import annotations

import sys
from typing import Any

from convoy_runtime.stopping import request_stop, stop_requested

_groups: tuple[Any, Any] = (None, None)
"""The default group, and the one on CPU that goes with it."""


def agree() -> bool:
    """Whether to stop after this step: true on every rank as soon as it is on one. Every rank calls it after every step.

    Costs one all-reduce of four bytes. Without `torch.distributed` it is `stop_requested`.
    """
    dist = _distributed()
    if dist is None:
        return stop_requested()
    torch = sys.modules["torch"]
    flag = torch.tensor([int(stop_requested())], dtype=torch.int32)
    dist.all_reduce(flag, op=dist.ReduceOp.MAX, group=_cpu_group(dist))
    agreed = bool(flag.item())
    if agreed:
        request_stop()
    # Not the flag of this process: it may have been set since, and the other ranks take another step.
    return agreed


def _distributed() -> Any | None:
    """`torch.distributed` with a process group of several ranks. A script that has not imported torch has none."""
    dist = sys.modules.get("torch.distributed")
    if dist is None or not dist.is_available() or not dist.is_initialized() or dist.get_world_size() < 2:
        return None
    return dist


def _cpu_group(dist: Any) -> Any:
    """The default group where it has gloo, else one with gloo beside it: a flag is not worth a wait for the GPU.

    It belongs to the default group, which an elastic training may make anew.
    """
    global _groups
    default = dist.group.WORLD
    if "gloo" in str(dist.get_backend()):
        return default
    if _groups[0] is not default:
        _groups = (default, dist.new_group(backend="gloo"))
    return _groups[1]
