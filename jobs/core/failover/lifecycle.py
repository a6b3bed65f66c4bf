"""Which action a job allows in which state, and how long it may take to stop: used by the services, shown by every door."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

CHECKPOINT_GRACE = "convoy.dev/checkpoint-grace"
"""Annotation of a job: how many seconds its pods may take to save their work once they are to stop."""
_GRACE_S = 30.0
_LONGEST_GRACE_S = 3600.0


class Action(StrEnum):
    SUSPEND = "suspend"
    RESUME = "resume"
    DELETE = "delete"


def refusal(action: Action, *, state: str, suspended: bool, finished: bool, deleting: bool) -> str:
    """Why ``action`` is not allowed now, as a sentence; empty when it is."""
    if deleting:
        return "the job is being deleted"
    if action is Action.DELETE:
        return ""
    if finished:
        return f"the job has ended ({state})"
    if action is Action.SUSPEND and suspended:
        return "the job is suspended already"
    if action is Action.RESUME and not suspended:
        return "the job is not suspended"
    return ""


def grace_s(manifest: Mapping[str, Any], templates: Iterable[tuple[str, Mapping[str, Any]]]) -> float:
    """Seconds until a job that has to leave is removed: as it says, else the longest termination grace of its pods."""
    annotation = (manifest["metadata"].get("annotations") or {}).get(CHECKPOINT_GRACE, "").removesuffix("s")
    if annotation.isascii() and annotation.isdecimal():
        return min(float(annotation), _LONGEST_GRACE_S)
    periods = [(template.get("spec") or {}).get("terminationGracePeriodSeconds") for _, template in templates]
    graces = [float(grace) for grace in periods if isinstance(grace, int) and grace >= 0]
    return min(max(graces, default=_GRACE_S), _LONGEST_GRACE_S)
