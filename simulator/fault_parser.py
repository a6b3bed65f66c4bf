"""Parses faults of simulated members: ``slow 0.5``, ``node-down north-gpu-0``. No I/O.

The command line, the control socket and scenario files all use this parser, and so accept the same syntax.
"""

from dataclasses import dataclass
from typing import Any

import yaml

from simulator.node.lifecycle import seconds

USAGE = {
    "away": "away",
    "back": "back",
    "slow": "slow SECONDS",
    "flaky": "flaky SHARE",
    "reset": "reset SHARE",
    "stale": "stale on|off",
    "node-down": "node-down NODE",
    "node-up": "node-up NODE",
    "deny": "deny NAMESPACE/SERVICEACCOUNT",
    "crash-pod": "crash-pod NAMESPACE/POD [EXIT CODE]",
    "reclaim": "reclaim NODE [NOTICE]",
}

RECLAIM_NOTICE_S = 120.0
"""Simulated seconds, of which a spot market gives between 30 and 300."""


class BadFault(ValueError):
    """The text is not a valid fault. The message shows the syntax."""


@dataclass(frozen=True, slots=True)
class Fault:
    kind: str
    amount: float = 0.0
    """Seconds (slow), a share of the requests (flaky, reset), 1 or 0 (stale), the exit code (crash-pod), seconds (reclaim)."""
    target: str = ""
    """A node, ``namespace/pod`` or ``namespace/account``."""


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a scenario: the fault to inject into a member after ``at_s`` simulated seconds."""

    at_s: float
    member: str
    fault: Fault


def parse(words: list[str]) -> Fault:
    kind, rest = (words[0], words[1:]) if words else ("", [])
    try:
        match kind, rest:
            case (("away" | "back"), []):
                return Fault(kind)
            case "slow", [amount]:
                return Fault(kind, _between(amount, 0.0, 60.0))
            case (("flaky" | "reset"), [amount]):
                return Fault(kind, _between(amount, 0.0, 1.0))
            case "stale", [("on" | "off") as switch]:
                return Fault(kind, float(switch == "on"))
            case (("node-down" | "node-up"), [node]):
                return Fault(kind, target=node)
            case "deny", [account] if account.count("/") == 1:
                return Fault(kind, target=account)
            case "crash-pod", [pod, *code] if pod.count("/") == 1 and len(code) < 2:
                return Fault(kind, _between(code[0], 1, 255) if code else 1.0, pod)
            case "reclaim", [node, *notice] if len(notice) < 2:
                return Fault(kind, seconds(notice[0]) if notice else RECLAIM_NOTICE_S, node)
    except ValueError as e:
        raise BadFault(f"{USAGE[kind]}: {e}") from e
    raise BadFault(f"{' '.join(words) or 'nothing'!r} is not a fault: {', '.join(USAGE.values())}")


def scenario(text: str) -> list[Step]:
    """The steps of a scenario file, in order of time."""
    try:
        entries = yaml.safe_load(text) or []
    except yaml.YAMLError as e:
        raise BadFault(f"the scenario is not YAML: {e}") from e
    if not isinstance(entries, list):
        raise BadFault("a scenario is a list of steps with at, member and fault")
    return sorted((_step(entry, i) for i, entry in enumerate(entries)), key=lambda step: step.at_s)


def _step(entry: Any, index: int) -> Step:
    if not isinstance(entry, dict) or set(entry) != {"at", "member", "fault"}:
        raise BadFault(f"step {index}: needs exactly at, member and fault")
    try:
        return Step(seconds(str(entry["at"])), str(entry["member"]), parse(str(entry["fault"]).split()))
    except ValueError as e:
        raise BadFault(f"step {index}: {e}") from e


def _between(text: str, least: float, most: float) -> float:
    value = float(text)
    if not least <= value <= most:
        raise ValueError(f"{text} is not between {least:g} and {most:g}")
    return value
