"""Backfill: big gangs do not starve behind small ones, and the nodes reserved for them do not stand idle.

The big gang that has waited longest gets the nodes of one cluster that are expected to be whole first. Others start on those
nodes only if they are expected to end by then: with known run times no later gang delays it. Estimated run times are trusted
for a limited time only, so that wrong ones cost no more than that. Quotas, policies and how a gang is fitted are not known
here: see `jobs.core.scheduling.backfill_reservation`. Times are seconds on any clock.
"""

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jobs.core.settings import CycleSettings

OVERDUE_S = 60.0
"""A run that has exceeded its estimate is expected to last this many seconds more, plus half of what it ran."""
ANNOTATION = "convoy.dev/duration"
"""Annotation of a pod template: the declared run time."""

_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?")


@dataclass(frozen=True, slots=True)
class ReservedNodes:
    """The nodes set aside for one gang, and when it is expected to start there."""

    gang: Hashable
    cluster: str
    nodes: tuple[str, ...]
    starts: float

    def may_backfill(self, runtime_s: float, now: float) -> bool:
        """Whether a gang with this run time may use the nodes: it ends before the reserved gang starts."""
        return now + runtime_s <= self.starts


@dataclass(slots=True)
class RuntimeEstimates:
    """Estimated run time of a job: that of its owner's last one with as many devices, else of the owner's last one."""

    unknown_s: float = CycleSettings().unknown_runtime_s
    """Expected of an owner's first job."""
    _last: dict[tuple[Hashable, int], float] = field(default_factory=dict)
    _any: dict[Hashable, float] = field(default_factory=dict)

    def learn(self, owner: Hashable, devices: int, ran: float) -> None:
        self._last[owner, devices] = self._any[owner] = ran

    def estimate_runtime(self, owner: Hashable, devices: int) -> float:
        return self._last.get((owner, devices), self._any.get(owner, self.unknown_s))


def expected_end(started: float, runtime_s: float, now: float) -> float:
    """When a running job is expected to end."""
    ran = now - started
    return started + runtime_s if runtime_s > ran else now + ran / 2 + OVERDUE_S


def is_big(nodes: float, largest: int, big: int) -> bool:
    """Whether a gang of ``nodes`` whole nodes is one to reserve nodes for, where the largest cluster has ``largest`` nodes.

    Smaller gangs than ``big`` nodes find room often enough without a reservation.
    """
    return nodes >= min(big, max(largest / 2, 1))


def declared_runtime(template: Mapping[str, Any]) -> float | None:
    """The run time that a pod template declares, ``90s`` or ``1h30m`` or bare seconds; None when absent or malformed."""
    text = str(((template.get("metadata") or {}).get("annotations") or {}).get(ANNOTATION) or "")
    if text.isdigit():
        return float(text)
    match = _DURATION.fullmatch(text)
    if not text or match is None:
        return None
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds
