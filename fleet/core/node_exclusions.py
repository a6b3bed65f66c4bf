"""For how long a faulty node takes no pods: a lease that ends by itself, and grows with every further fault. Pure.

A node that flaps is therefore not given back and excluded again every few minutes: a fault soon after the last one doubles the
lease, and only a long quiet forgets earlier faults. It knows neither jobs nor who may exclude a node.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from fleet.core.settings import NodeExclusionSettings

TAINT = "convoy.dev/excluded"
"""Key of the taint of an excluded node in its member, where the cluster asks for it; its value is the reason."""
TAINT_NODES = "convoy.dev/taint-excluded-nodes"
"""Annotation of a cluster: ``true`` has its excluded nodes tainted, ``false`` has the taints taken off."""
_MOST_FAULTS = 64
"""Counted faults; the lease is as long as it may be long before."""


class ExclusionReason(StrEnum):
    INFRASTRUCTURE = "Infrastructure"
    """The member showed that a node was lost, or refused the pods that were bound to it."""
    GPU_FAULT = "GpuFault"
    """The log of a job shows a fault of a GPU or its links: believed for that job only."""
    REPEATED_FAULTS = "RepeatedFaults"
    """It failed several times within a while, by the member's word."""
    NODE_PROBLEM = "NodeProblem"
    """Its own conditions or taints say that it is faulty (`fleet.core.node_problems`)."""
    NODE_CHECK = "NodeCheck"
    """It failed the check that a runtime makes of its nodes, by the log of the job: believed for that job only."""
    STRAGGLER = "Straggler"
    """It was far slower than the others in that check, and its job is not to run with such nodes."""
    OPERATOR = "Operator"


@dataclass(frozen=True, slots=True)
class Lease:
    since: datetime
    until: datetime
    faults: int
    fault_at: datetime
    """When the last fault was that is counted."""

    def is_over(self, now: datetime) -> bool:
        return self.until <= now

    @property
    def words(self) -> str:
        return f"until {self.until:%Y-%m-%d %H:%M} UTC"


def extended(lease: Lease | None, fault_at: datetime, now: datetime, settings: NodeExclusionSettings) -> Lease:
    """The lease after a fault. A fault that is not later than the last one was counted already and changes nothing.

    A member's clock may be ahead: a fault in the future counts as one of now.
    """
    fault_at = min(fault_at, now)
    if lease is not None and fault_at <= lease.fault_at:
        return lease
    is_remembered = lease is not None and fault_at - lease.fault_at <= timedelta(seconds=settings.memory_s)
    faults = min(lease.faults + 1, _MOST_FAULTS) if lease is not None and is_remembered else 1
    until = now + length(faults, settings)
    if lease is None or lease.is_over(now):
        return Lease(now, until, faults, fault_at)
    return replace(lease, until=max(lease.until, until), faults=faults, fault_at=fault_at)


def length(faults: int, settings: NodeExclusionSettings) -> timedelta:
    """How long the lease of the n-th fault in a row is."""
    return timedelta(seconds=min(settings.first_lease_s * 2.0 ** (faults - 1), settings.longest_lease_s))


def after_clock_step(lease: Lease, now: datetime) -> Lease:
    """The lease on a clock that was set back: it ends after its whole length at the latest, not at a far date."""
    ahead = lease.since - now
    if ahead <= timedelta():
        return lease
    return replace(lease, since=now, until=lease.until - ahead, fault_at=min(lease.fault_at, now))


def most_with_problems(nodes: int) -> int:
    """How many nodes of a cluster may be excluded for what they say of themselves: beyond, a monitor is more likely wrong."""
    return max(nodes // 2, 1)


def most_excluded(nodes: int, settings: NodeExclusionSettings) -> int:
    """How many nodes of a cluster may be excluded because they failed repeatedly: more is no longer a fault of nodes."""
    return max(int(nodes * settings.most_share), 1)
