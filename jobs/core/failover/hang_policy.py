"""What a job wants done when its training hangs, by its annotations."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from jobs.core.manifest_fields import Faults
from quotas.core.trees import durations

ON_HANG, HANG_AFTER = "convoy.dev/on-hang", "convoy.dev/hang-after"
LEAST_S = 120.0
_SHORTEST_S, _LONGEST_S = 60.0, 30 * 86400.0


class HangPolicy(StrEnum):
    LOG = "Log"
    """An event in its timeline."""
    NOTIFY = "Notify"
    """Also the operator's webhook."""
    RESTART = "Restart"
    """Also its pods are started again at their place; no budget is used."""
    RELAUNCH = "Relaunch"
    """Also its attempt ends as failed, and it waits for another place, within its budgets."""


@dataclass(frozen=True, slots=True)
class OnHang:
    policy: HangPolicy = HangPolicy.NOTIFY
    least_s: float = LEAST_S
    """The shortest silence that is too long."""


def parse_on_hang(annotations: object, faults: Faults) -> OnHang:
    stated: Mapping[str, object] = annotations if isinstance(annotations, Mapping) else {}
    policy, least = stated.get(ON_HANG, HangPolicy.NOTIFY), stated.get(HANG_AFTER)
    if policy not in [*HangPolicy]:
        faults.add(f"metadata.annotations.{ON_HANG}", f"must be one of {', '.join(HangPolicy)}, not {policy!r}"[:200])
        policy = HangPolicy.NOTIFY
    duration = None if least is None else durations.parse_duration(least)
    least_s = LEAST_S if duration is None else duration.total_seconds()
    if (least is not None and duration is None) or not _SHORTEST_S <= least_s <= _LONGEST_S:
        words = f"must be {durations.FORMAT}, from 60s to 30d, not {least!r}"
        faults.add(f"metadata.annotations.{HANG_AFTER}", words[:200])
        least_s = LEAST_S
    return OnHang(HangPolicy(str(policy)), least_s)
