"""What a queue that borrows may claim by its share from another one, in words: for a job that waits."""

from quotas.core.accounts.borrowed_shares import BorrowedShares, as_percent, is_less
from quotas.core.accounts.ledger import Charge, Ledger
from quotas.core.trees.tree import ReclaimPolicy


def describe_claim(ledger: Ledger, charge: Charge, other: str, resource: str, *, has_claimed: bool) -> str:
    """Whether jobs of the leaf ``other`` may be evicted for this one by their shares of a resource, and why.

    Empty where the node at which the two part does not say `reclaim: FairShare`, or is the leaf itself.
    """
    own_rows, other_rows = ledger.path_rows[charge.leaf].tolist(), ledger.path_rows[other].tolist()
    parting = next(row for row in own_rows if row in other_rows)
    if parting in (own_rows[0], other_rows[0]):
        return ""
    if ledger.tree.nodes[parting].attributes.reclaim is not ReclaimPolicy.FAIR_SHARE:
        return ""
    own, theirs = (rows[rows.index(parting) - 1] for rows in (own_rows, other_rows))
    shares = BorrowedShares(ledger, [ledger.column[resource]])
    mine, its = shares.with_more(own, ledger.vector(charge.amounts)), shares.of(theirs)
    paths = [ledger.tree.nodes[row].path for row in (own, theirs)]
    compared = (
        f"{paths[1]} borrows a share of {as_percent(its)} by its weight, and {paths[0]} would borrow {as_percent(mine)} with"
        " this job"
    )
    if has_claimed:
        return f"{compared}, which has had others evicted by its share once already: it waits for what becomes free"
    if is_less(mine, its):
        return f"{compared}: jobs that borrow there may be evicted for it"
    return f"{compared}: none is evicted for it before that share is the larger one"
