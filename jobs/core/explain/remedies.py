"""What may help a job that does not run, by the reason it carries: one closed table, so that no advice is about another gate.

A job that waits for a policy is not advised about clusters, and one that waits for its quota is not advised about nodes. The
sentences are built by the doors from the kind and its amounts. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from jobs.core import reasons
from jobs.core.admission.backfill_policy import ANNOTATION
from jobs.core.failover.lifecycle import DEADLINE
from jobs.core.reasons import Amounts, Code
from quotas.core.accounts.ledger import Charge, Ledger
from quotas.core.trees.amounts import COUNTS


class Kind(StrEnum):
    MAKE_POLICY = "MakePolicy"
    MAKE_QUOTA_TREE = "MakeQuotaTree"
    ADD_NAMESPACE = "AddNamespace"
    RESUME = "Resume"
    OPEN_QUEUE = "OpenQueue"
    LOOK_AT_JOB = "LookAtJob"
    RETURN_BORROWED = "ReturnBorrowed"
    RAISE_QUOTA = "RaiseQuota"
    LOWER_REQUEST = "LowerRequest"
    ALL_OF = "AllOf"
    JOIN_CLUSTER = "JoinCluster"
    RESTORE_CLUSTER = "RestoreCluster"
    LOOK_AT_CLUSTER = "LookAtCluster"
    WAIT_UNTIL = "WaitUntil"
    WAIT_FOR_GANG = "WaitForGang"
    UNCORDON = "Uncordon"
    TOLERATE = "Tolerate"
    WAIT_FOR_JOBS = "WaitForJobs"
    SELECT = "Select"
    ADD_NODES = "AddNodes"
    SUBMIT_AGAIN = "SubmitAgain"
    CHANGE_AFTER = "ChangeAfter"
    RAISE_BUDGET = "RaiseBudget"
    END_BEFORE = "EndBefore"


PLACEMENT = (
    Kind.RESTORE_CLUSTER,
    Kind.WAIT_UNTIL,
    Kind.WAIT_FOR_GANG,
    Kind.UNCORDON,
    Kind.TOLERATE,
    Kind.WAIT_FOR_JOBS,
    Kind.SELECT,
    Kind.ADD_NODES,
    Kind.LOWER_REQUEST,
)
"""What costs least first."""
REMEDIES: Mapping[Code, tuple[Kind, ...]] = {
    Code.WAITING_FOR_SCHEDULER: PLACEMENT,
    Code.NO_POLICY: (Kind.MAKE_POLICY,),
    Code.SCHEDULING_SUSPENDED: (Kind.MAKE_QUOTA_TREE,),
    Code.SUSPENDED: (Kind.RESUME,),
    Code.QUOTA_EXCEEDED: (Kind.RETURN_BORROWED, Kind.WAIT_FOR_JOBS, Kind.RAISE_QUOTA),
    Code.MAX_JOBS_REACHED: (Kind.WAIT_FOR_JOBS, Kind.RAISE_QUOTA),
    Code.NEVER_FITS: (Kind.ALL_OF, Kind.LOWER_REQUEST),
    Code.BEHIND_IN_QUEUE: (Kind.LOOK_AT_JOB,),
    Code.BUDGET_SPENT: (Kind.RAISE_BUDGET,),
    Code.WINDOW_AHEAD: (Kind.END_BEFORE,),
    Code.QUEUE_HELD: (Kind.OPEN_QUEUE,),
    Code.NO_QUOTA_FOR_NAMESPACE: (Kind.ADD_NAMESPACE,),
    # Room is being made already, by jobs that the quota chose: nothing is left to do.
    Code.WAITING_FOR_RECLAIM: (),
    Code.RECLAIMED: PLACEMENT,
    Code.NO_CLUSTER: (Kind.JOIN_CLUSTER,),
    Code.NO_CLUSTER_FITS: PLACEMENT,
    # Its message says what is in the way; it is tried again by itself.
    Code.PLAN_REJECTED: (),
    Code.WAITING_FOR_MEMBER: (Kind.LOOK_AT_CLUSTER,),
    Code.WAITING_FOR_PURGE: (Kind.LOOK_AT_CLUSTER,),
    Code.WAITING_FOR_PODS: (),
    Code.MEMBER_REFUSED: (Kind.LOOK_AT_CLUSTER,),
    # It is moved by itself.
    Code.APPLICATION_UNHEALTHY: (),
    Code.CLUSTER_LOST: PLACEMENT,
    Code.WAITING_FOR_CLUSTER: (Kind.LOOK_AT_CLUSTER,),
    Code.COPY_VANISHED: PLACEMENT,
    # It has ended.
    Code.ATTEMPTS_EXHAUSTED: (),
    Code.MAX_WAIT_EXCEEDED: (),
    Code.MAX_RUNTIME_EXCEEDED: (),
    Code.DEADLINE_EXCEEDED: (),
    Code.WAITING_FOR_JOB: (Kind.CHANGE_AFTER,),
    Code.PREDECESSOR_FAILED: (Kind.SUBMIT_AGAIN, Kind.CHANGE_AFTER),
    Code.DELETING: (),
    Code.FAILED: (),
    # Of one cluster that was looked at.
    Code.FITS: (),
    Code.NOT_SELECTED: (Kind.SELECT,),
    # Its data is on another cluster, whose own verdict says what stands in the way there.
    Code.DATA_ELSEWHERE: (),
    Code.NOT_READY: (Kind.RESTORE_CLUSTER,),
    Code.CORDONED: (Kind.UNCORDON,),
    Code.CAPACITY_UNKNOWN: (),
    Code.UNTOLERATED_TAINT: (Kind.TOLERATE,),
    Code.KIND_NOT_SERVED: (),
    Code.SCHEDULER_NOT_SERVED: (),
    Code.CANNOT_RESERVE: (),
    Code.FAILED_HERE: (Kind.WAIT_UNTIL,),
    Code.NOT_ENOUGH_FREE: (Kind.WAIT_FOR_JOBS, Kind.ADD_NODES),
    Code.NO_NODE_FOR_POD: (Kind.WAIT_FOR_JOBS, Kind.ADD_NODES),
    # The leases of the nodes end by themselves; until then others have to end, or nodes to come.
    Code.NODES_EXCLUDED: (Kind.WAIT_FOR_JOBS, Kind.ADD_NODES),
    Code.KEPT_FOR_GANG: (Kind.WAIT_FOR_GANG,),
}


@dataclass(frozen=True, slots=True)
class JobRef:
    """A job that advice is about."""

    uid: str
    name: str
    """``namespace/name``; empty for a reader who may not see it."""
    amounts: Amounts = field(default_factory=dict)

    @property
    def is_named(self) -> bool:
        return self.name != ""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing a person can do or wait for; the fields that its kind has no use for are empty."""

    kind: Kind
    message: str
    cluster: str = ""
    path: str = ""
    """The node of the quota tree."""
    queue: str = ""
    bound: str = ""
    """Which of the node's limits: ``min`` or ``max``."""
    role: str = ""
    """Whose pods a smaller request is about; empty: the whole gang."""
    jobs: tuple[JobRef, ...] = ()
    count: int = 0
    """How many nodes, or how many of the jobs have to end."""
    beside: int = 0
    """How many nodes it takes while what runs on the cluster goes on; `count` is for the empty cluster."""
    amounts: Amounts = field(default_factory=dict)
    at: datetime | None = None
    by: str = ""
    comment: str = ""
    """Why the queue was closed, which taints are in the way, or which jobs have to succeed."""
    manifest: Mapping[str, Any] = field(default_factory=dict)
    """What to apply, where applying one object is all it takes."""
    steps: tuple["Change", ...] = ()
    """Of AllOf: none of them helps alone."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the jobs that may be seen."""
        return tuple(job.name for job in self.jobs if job.is_named)


def end_before(facts: Mapping[str, Any]) -> list[Change]:
    """For a job that a window is in the way of, by the facts of its reason."""
    if not facts.get("begin") or not facts.get("until"):
        return []
    begin, end = datetime.fromisoformat(facts["begin"]), datetime.fromisoformat(facts["until"])
    message = (
        f"state that it ends before {begin:%F %T} UTC, by {DEADLINE} or {ANNOTATION}, or wait for the window of"
        f" {facts['window']} to end at {end:%F %T} UTC"
    )
    return [Change(Kind.END_BEFORE, message, path=facts["window"], at=begin)]


@dataclass(frozen=True, slots=True)
class Borrower:
    path: str
    amount: int


def all_of(steps: Sequence[Change]) -> list[Change]:
    if len(steps) < 2:
        return list(steps)
    return [Change(Kind.ALL_OF, " and ".join(step.message for step in steps), steps=tuple(steps))]


def limits_to_raise(
    ledger: Ledger, charge: Charge, fleet: Amounts, reserved: Mapping[str, int], *, empty: bool
) -> list[Change]:
    """Every limit between the leaf and the root that has to be raised; nothing if one would be above the fleet.

    ``reserved``: what idle siblings keep back for themselves, by path. ``empty``: as if nothing else were charged.
    """
    held = ledger.idle if empty else ledger.held
    changes: list[Change] = []
    for row in ledger.path_rows[charge.leaf].tolist():
        path = ledger.tree.nodes[row].path
        limits = [("max", ledger.max, held.used)]
        if not charge.preemptible:
            limits.append(("min", ledger.floor, held.firm))
        for column, amount in ledger.ask(charge.amounts):
            for bound, limit, used in limits:
                needed = int(used[row, column]) + amount + reserved.get(path, 0)
                if needed <= limit[row, column]:
                    continue
                resource = ledger.resources[column]
                if resource not in COUNTS and needed > fleet.get(resource, 0):
                    return []
                message = f"raise {bound} of {path} to {reasons.amount(resource, needed)}"
                changes.append(Change(Kind.RAISE_QUOTA, message, path=path, bound=bound, amounts={resource: needed}))
    return changes


def find_borrowers(ledger: Ledger, path: str, resource: str) -> list[Borrower]:
    """The leaves below a node that use more than their min, most first."""
    column = ledger.column[resource]
    borrowing = []
    for leaf in ledger.tree.leaves:
        if leaf.path != path and not leaf.path.startswith(f"{path}/"):
            continue
        row = ledger.row[leaf.path]
        over = int(ledger.held.used[row, column] - ledger.min[row, column])
        if over > 0:
            borrowing.append(Borrower(leaf.path, over))
    return sorted(borrowing, key=lambda borrower: (-borrower.amount, borrower.path))
