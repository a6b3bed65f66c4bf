"""Which user actions a job allows in which state, and how long its pods may take to stop.

Services enforce these rules, and all APIs show them.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from jobs.core.manifest_fields import Faults
from quotas.core.trees import durations

CHECKPOINT_GRACE = "convoy.dev/checkpoint-grace"
"""Annotation of a job: how many seconds its pods get to save their work when the job is stopped."""
MAX_WAIT = "job-supervisor.kube-ai.io/max-wait-time"
"""Annotation of a job: how many seconds it may wait for quota and room before it ends."""
DEADLINE = "convoy.dev/deadline"
"""Annotation of a job: when it has to have ended, as a moment or as a duration since its submission."""
_LONGEST_WAIT_S = 10 * 365 * 86_400
_GRACE_S = 30.0
_LONGEST_GRACE_S = 3600.0


class Action(StrEnum):
    SUSPEND = "suspend"
    RESUME = "resume"
    DELETE = "delete"


def refusal(action: Action, *, state: str, suspended: bool, finished: bool, deleting: bool) -> str:
    """Why ``action`` is not allowed in this state, as a sentence. Empty if it is allowed."""
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
    """How many seconds a job gets to stop: the value of its annotation, else the longest termination grace period of its pods.

    At most an hour.
    """
    annotation = (manifest["metadata"].get("annotations") or {}).get(CHECKPOINT_GRACE, "").removesuffix("s")
    if annotation.isascii() and annotation.isdecimal():
        return min(float(annotation), _LONGEST_GRACE_S)
    periods = [(template.get("spec") or {}).get("terminationGracePeriodSeconds") for _, template in templates]
    graces = [float(grace) for grace in periods if isinstance(grace, int) and grace >= 0]
    return min(max(graces, default=_GRACE_S), _LONGEST_GRACE_S)


def max_wait_s(manifest: Mapping[str, Any]) -> int | None:
    """How many seconds a job may wait at a stretch. None: for ever, also where the annotation is no whole number above 0."""
    annotation = str((manifest["metadata"].get("annotations") or {}).get(MAX_WAIT) or "").removesuffix("s")
    seconds = int(annotation) if annotation.isascii() and annotation.isdecimal() and len(annotation) < 12 else 0
    return min(seconds, _LONGEST_WAIT_S) or None


def parse_deadline(annotations: object, submitted: datetime, faults: Faults) -> datetime | None:
    """When the job has to have ended; None: it has no deadline."""
    text = annotations.get(DEADLINE) if isinstance(annotations, Mapping) else None
    if text is None:
        return None
    duration = durations.parse_duration(text)
    try:
        deadline = datetime.fromisoformat(str(text)) if duration is None else submitted + duration
        if deadline.tzinfo is not None:
            return deadline.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    faults.add(
        f"metadata.annotations.{DEADLINE}",
        f"must be a moment with a time zone, such as 2026-03-01T12:00:00Z, or {durations.FORMAT}, not {str(text)[:60]!r}",
    )
    return None
