"""What is known of the agent in a member, beside the row that is read with every job."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import models

from fleet.core.members.fence import Renewals
from fleet.models.cluster import Cluster


class MemberAgent(models.Model):
    """The fleet's Lease in the member, as `fleet.core.members.fence` has it. The row is written before a renewal is sent."""

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="agent")
    due_at = models.DateTimeField(null=True, blank=True)
    """When the Lease is renewed next, or looked for where there is none; null: at once. A worker that does it moves it."""
    duration_s = models.PositiveIntegerField(default=0, db_default=0)
    renewed_at = models.DateTimeField(null=True, blank=True)
    """When the last renewal was sent, whether or not it arrived."""
    until = models.DateTimeField(null=True, blank=True)
    """The latest time until which a renewal that was sent lets copies run."""
    seen_at = models.DateTimeField(null=True, blank=True)
    """When the latest renewal was sent that the agent has seen; null: there is no agent."""
    message = models.CharField(max_length=300, blank=True, default="", db_default="")
    """Why the Lease was not renewed at the last try; empty: it was."""

    @property
    def renewals(self) -> Renewals | None:
        """None: no renewal was sent."""
        if self.renewed_at is None or self.until is None:
            return None
        return Renewals(timedelta(seconds=self.duration_s), self.renewed_at, self.until, self.seen_at)

    @property
    def is_answered(self) -> bool:
        """Whether an agent lived at the last renewals."""
        return self.renewals is not None and self.renewals.is_answered


@dataclass(frozen=True, slots=True)
class AgentState:
    """Whether jobs are stopped in the member when the fleet is silent there, and else why not; the same by every API."""

    answers: bool
    reason: str
    message: str
    seen_at: datetime | None


def agent_state(cluster: Cluster) -> AgentState:
    """Of a cluster that was read with its ``agent``."""
    known: MemberAgent | None = getattr(cluster, "agent", None)
    if known is None or known.renewed_at is None:
        return AgentState(False, "NotAsked", "no agent has been looked for in the cluster yet", None)
    if known.is_answered:
        message = f"it stops jobs of policies with Fence when the fleet is silent for {known.duration_s} s"
        return AgentState(True, "AgentAnswers", message, known.seen_at)
    if known.seen_at is not None:
        return AgentState(False, "AgentSilent", "it does not answer renewals of its Lease", known.seen_at)
    return AgentState(False, "NoAgent", known.message or "no agent has answered in the cluster yet", None)
