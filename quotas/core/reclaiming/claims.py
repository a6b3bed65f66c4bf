"""What a queue that borrows may claim by share or priority from another one, in words: for a job that waits."""

from collections.abc import Callable
from datetime import datetime

from quotas.core.accounts.borrowed_shares import BorrowedShares, as_percent, is_less
from quotas.core.accounts.ledger import Ledger
from quotas.core.queues.order import Unit
from quotas.core.trees.tree import PreemptPolicy, ReclaimPolicy

FirstAt = Callable[[], datetime | None]
_USED_UP = "has had others evicted for what it would borrow once already: it waits for what becomes free"


def describe_claim(ledger: Ledger, claimant: Unit, other: str, resource: str, first_at: FirstAt) -> str:
    """Whether jobs of the leaf ``other``, which borrows, may be evicted for this one, and why.

    ``first_at``: when the min-runtime of the first of them is over; None: some have none. Asked only where it is said.
    Empty where the node at which the two part has neither `reclaim: FairShare` nor a `borrowing-priority` that the job reaches,
    or is one of the two itself.
    """
    own_rows, other_rows = ledger.path_rows[claimant.leaf].tolist(), ledger.path_rows[other].tolist()
    parting = next(row for row in own_rows if row in other_rows)
    if parting in (own_rows[0], other_rows[0]):
        return ""
    own, theirs = (rows[rows.index(parting) - 1] for rows in (own_rows, other_rows))
    rules = ledger.tree.nodes[parting].attributes
    evicts = "jobs that borrow there may be evicted for it"
    bar = _bar(ledger, claimant)
    if rules.borrowing_priority is not None and claimant.priority >= rules.borrowing_priority:
        its = f"its priority {claimant.priority} reaches the borrowing-priority {rules.borrowing_priority}"
        return f"{its}, but it {bar}" if bar else f"{its}: below it, {evicts}{_from(first_at())}"
    if rules.reclaim is not ReclaimPolicy.FAIR_SHARE:
        return ""
    shares = BorrowedShares(ledger, [ledger.column[resource]])
    mine, its_share = shares.with_more(own, ledger.vector(claimant.charge.amounts)), shares.of(theirs)
    paths = [ledger.tree.nodes[row].path for row in (own, theirs)]
    compared = (
        f"{paths[1]} borrows a share of {as_percent(its_share)} by its weight, and {paths[0]} would borrow"
        f" {as_percent(mine)} with this job"
    )
    if bar:
        return f"{compared}, which {bar}"
    if is_less(mine, its_share):
        return f"{compared}: {evicts}{_from(first_at())}"
    return f"{compared}: none is evicted for it before that share is the larger one"


def _bar(ledger: Ledger, claimant: Unit) -> str:
    """Why the job has no such right at all, as `borrowers.may_claim` decides it; empty: it has."""
    if claimant.has_claimed:
        return _USED_UP
    if not claimant.charge.preemptible:
        return "may not be preempted, and evicts no jobs for what it would borrow"
    if ledger.tree.by_path[claimant.leaf].attributes.preempt_policy is PreemptPolicy.LOWER_PRIORITY:
        return "evicts no jobs of other queues for what it would borrow: its queue preempts by priority"
    return ""


def _from(first_at: datetime | None) -> str:
    return f", from {first_at:%Y-%m-%d %H:%M:%S} UTC on, when the min-runtime of the first is over" if first_at else ""
