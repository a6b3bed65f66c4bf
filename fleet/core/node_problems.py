"""Whether a node's own conditions and taints say that its hardware, kernel or runtime is faulty. Pure.

Known are the conditions of NodeProblemDetector and of the health monitors of vendors and clouds, which name what is wrong
(``True`` is bad) or what is well (``False`` is bad), and the taints by which those monitors keep pods off. What the node of a
healthy fleet may carry is no problem: pressure, readiness, and taints that dedicate GPU nodes to GPU jobs.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

LONGEST = 200
_BAD_IF_TRUE = frozenset(
    {
        "KernelDeadlock", "ReadonlyFilesystem", "XfsShutdown", "CperHardwareErrorFatal", "CorruptDockerOverlay2",
        "FilesystemCorruptionProblem", "FrequentKubeletRestart", "FrequentDockerRestart", "FrequentContainerdRestart",
        "FrequentUnregisterNetDevice", "KubeletUnhealthy", "KubeletProblem", "ContainerRuntimeUnhealthy",
        "ContainerRuntimeProblem", "NebiusBootDiskIOError",
    }
)  # fmt: skip
_BAD_IF_FALSE = frozenset(
    {"AcceleratedHardwareReady", "KernelReady", "StorageReady", "NetworkingReady", "ContainerRuntimeReady"}
)
_DEVICE = re.compile(r"gpu|xid|nvlink|nvswitch|nvidia|dcgm|infiniband|iblink|accelerat", re.IGNORECASE)
_SAYS_WELL = re.compile(r"(Ready|(?<!Un)Healthy|Available|Active|Present)$")
_HARMLESS = re.compile(r"NonFatal")
_SAYS_BAD = re.compile(r"error|unhealthy|health/|fault|fail|fallen|fatal|degraded|lost|missing|problem", re.IGNORECASE)
_KEEPS_OFF = ("NoSchedule", "NoExecute")
_KEY = "convoy.dev/"
"""Taints of our own say nothing new."""


def problem_of(conditions: object, taints: Iterable[Mapping[str, Any]]) -> str:
    """What is wrong with the node, in words and cut; empty: nothing that its member says."""
    words = ", ".join(sorted({*_of_conditions(conditions), *_of_taints(taints)}))
    return words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}…"


def _of_conditions(conditions: object) -> Iterator[str]:
    for condition in conditions if isinstance(conditions, list) else ():
        if not isinstance(condition, Mapping):
            continue
        name, reason = _word(condition.get("type")), _word(condition.get("reason"))
        if name and condition.get("status") == _bad_status(name):
            yield f"condition {name} ({reason})" if reason and reason != name else f"condition {name}"


def _bad_status(name: str) -> str:
    if name in _BAD_IF_FALSE:
        return "False"
    if name in _BAD_IF_TRUE:
        return "True"
    if not _DEVICE.search(name) or _HARMLESS.search(name) or _SAYS_WELL.search(name):
        return ""
    return "True"


def _of_taints(taints: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for taint in taints:
        key = _word(taint.get("key"))
        is_health = bool(_DEVICE.search(key) and _SAYS_BAD.search(key) and not _HARMLESS.search(key))
        if is_health and taint.get("effect") in _KEEPS_OFF and not key.startswith(_KEY):
            yield f"taint {key}"


def _word(value: object) -> str:
    text = value if isinstance(value, str) else ""
    return "".join(char for char in text[:100] if char.isprintable())
