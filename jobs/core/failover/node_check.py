"""The node check of a gang before it starts: whether a job wants it, and what a pod says of its node when it has failed. Pure.

`convoy_runtime.nodecheck` is what runs in the pods. What it says is the word of the job's own pods: it is believed for that job
alone.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from jobs.core.manifest_fields import Faults

NODE_CHECK = "convoy.dev/node-check"
CONTAINER = "convoy-node-check"
FAILED = 86
"""Exit code of a pod whose node is not to be used."""
_MESSAGE = 200


class NodeCheck(StrEnum):
    OFF = "Off"
    FAULTY = "Faulty"
    """A pod on a faulty node does not start."""
    FAULTY_OR_SLOW = "FaultyOrSlow"


@dataclass(frozen=True, slots=True)
class Failed:
    """What a pod says of its node."""

    message: str
    is_slow: bool


def parse_node_check(annotations: object, faults: Faults) -> NodeCheck:
    stated: Mapping[str, object] = annotations if isinstance(annotations, Mapping) else {}
    wanted = stated.get(NODE_CHECK, NodeCheck.OFF)
    if wanted not in [*NodeCheck]:
        path = f"metadata.annotations.{NODE_CHECK}"
        faults.add(path, f"must be one of {', '.join(NodeCheck)}, not {wanted!r}"[:200])
        return NodeCheck.OFF
    return NodeCheck(str(wanted))


def failed(details: Mapping[str, Any]) -> Failed | None:
    """Whether the pod with these details has failed the check, now or before its container was started again."""
    containers = [each for each in details.get("initContainers") or [] if each.get("name") == CONTAINER]
    ended = [(each.get(state) or {}).get("terminated") or {} for each in containers for state in ("state", "lastState")]
    end = next((each for each in ended if each.get("exitCode") == FAILED), None)
    return None if end is None else _read(end.get("message"))


def _read(message: object) -> Failed:
    """The termination message is the line that the check writes, or nothing of use."""
    try:
        said = json.loads(message) if isinstance(message, str) else {}
    except (ValueError, RecursionError):
        said = {}
    said = said if isinstance(said, dict) else {}
    words = said.get("message") if isinstance(said.get("message"), str) else ""
    printable = " ".join("".join(char if char.isprintable() else " " for char in str(words)[:1000]).split())
    return Failed(printable[:_MESSAGE] or "it failed the node check", said.get("verdict") == "slow")
