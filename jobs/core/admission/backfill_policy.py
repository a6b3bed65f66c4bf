"""ReservedNodes reservation: big gangs do not starve behind small ones, and what is kept for them does not stand idle.

The big gang that has waited longest gets the nodes of one cluster that are expected to be whole first. Others start on those
nodes only if they are expected to be gone by then: with known run times nobody who came later delays it. Guessed ones are
believed for a time only, so that wrong estimates cost no more than that. It must not know quotas, policies or how a gang is
fitted: that is for `jobs.core.scheduling.backfill_reservation`. Times are seconds on any clock.
"""

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jobs.core.settings import CycleSettings

OVERDUE_S = 60.0
"""A run that has outlasted its guess is expected to go on this long and half as long again as it ran."""
ANNOTATION = "convoy.dev/duration"
"""How long a pod runs, as whoever submits it declares it."""

_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?")


@dataclass(frozen=True, slots=True)
class ReservedNodes:
    """These nodes are kept for one gang, which is expected to start there then."""

    gang: Hashable
    cluster: str
    nodes: tuple[str, ...]
    starts: float

    def lets(self, lasts: float, now: float) -> bool:
        """Whether somebody who runs so long may use the nodes: it is gone before the gang starts."""
        return now + lasts <= self.starts


@dataclass(slots=True)
class RuntimeEstimates:
    """How long a job will run: as long as its owner's last one with as many devices, else as the owner's last one."""

    unknown_s: float = CycleSettings().unknown_runtime_s
    """Expected of an owner's first job."""
    _last: dict[tuple[Hashable, int], float] = field(default_factory=dict)
    _any: dict[Hashable, float] = field(default_factory=dict)

    def learn(self, owner: Hashable, devices: int, ran: float) -> None:
        self._last[owner, devices] = self._any[owner] = ran

    def of(self, owner: Hashable, devices: int) -> float:
        return self._last.get((owner, devices), self._any.get(owner, self.unknown_s))


def ends(started: float, lasts: float, now: float) -> float:
    """When a running job is expected to be gone."""
    ran = now - started
    return started + lasts if lasts > ran else now + ran / 2 + OVERDUE_S


def is_big(nodes: float, largest: int, big: int) -> bool:
    """Whether a gang of ``nodes`` whole nodes is one to reserve nodes for, where the largest cluster has ``largest`` nodes.

    Smaller gangs than ``big`` nodes find room often enough without a reservation.
    """
    return nodes >= min(big, max(largest / 2, 1))


def declared(template: Mapping[str, Any]) -> float | None:
    """The run time that a pod template declares, ``90s`` or ``1h30m`` or bare seconds; None: none that can be read."""
    text = str(((template.get("metadata") or {}).get("annotations") or {}).get(ANNOTATION) or "")
    if text.isdigit():
        return float(text)
    found = _DURATION.fullmatch(text)
    if not text or found is None:
        return None
    hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return hours * 3600 + minutes * 60 + seconds
