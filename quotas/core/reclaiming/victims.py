"""What reclaim chooses: jobs to stop, or single pods for jobs to give back, with the right to each and what it frees."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from quotas.core.accounts.ledger import Charge
from quotas.core.reclaiming.candidates import Running
from quotas.core.trees.amounts import format_amount


class Cause(StrEnum):
    ABOVE_MIN = "AboveMin"
    LOWER_PRIORITY = "LowerPriority"
    FAIR_SHARE = "FairShare"
    """Of a queue that borrows more than the preemptor's."""
    BORROWING_PRIORITY = "BorrowingPriority"
    """Of a queue that borrows, and below the priority from which jobs may evict such ones."""


BETWEEN_BORROWERS = (Cause.FAIR_SHARE, Cause.BORROWING_PRIORITY)
"""The preemptor borrows as well; it has these rights once."""


@dataclass(frozen=True, slots=True)
class Victim:
    key: str
    leaf: str
    cause: Cause
    path: str
    """The node above its min, just below the lowest common ancestor; for a lower priority the common queue."""
    resource: str
    over: int
    """By how much the node was above min when this victim was chosen; 0 for a lower priority."""
    lost_gpu_hours: float = 0.0
    """Of work that it has not saved."""
    protected_until: datetime | None = None
    """When it may first be evicted; None: now."""
    detail: str = ""
    """Why, between queues that borrow."""

    @property
    def is_for_borrowing(self) -> bool:
        """Whether the preemptor was not promised the place, and borrows as well."""
        return self.cause in BETWEEN_BORROWERS

    @property
    def right(self) -> str:
        """What gives the preemptor the right to it, as a phrase."""
        return "borrows its place" if self.is_for_borrowing else "was promised its place"

    @property
    def message(self) -> str:
        if self.detail:
            return self.detail
        if self.cause is Cause.LOWER_PRIORITY:
            return f"has a lower priority in {self.path}, which preempts by priority"
        return f"{self.path} is {format_amount(self.resource, self.over)} above its min"


@dataclass(frozen=True, slots=True)
class Reclaim:
    preemptor: str
    victims: tuple[Victim, ...]
    """In the order they are chosen; empty when the preemptor fits as things stand."""
    freed: dict[str, int]

    @property
    def protected_until(self) -> datetime | None:
        """When the last of the victims may be evicted; None: all may be now."""
        return max((victim.protected_until for victim in self.victims if victim.protected_until), default=None)


@dataclass(frozen=True, slots=True)
class Target:
    positions: tuple[int, ...]
    """Its own among the candidates, and those of the pods that it could have given back alone."""
    job: Running
    victim: Victim
    needs: tuple[tuple[int, int], ...]
    """(level, column) of the preemptor's path that must be within min at the end, or there was no right to this job."""
    charges: tuple[Charge, ...]
    """Of each of the positions."""
