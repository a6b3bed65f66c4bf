"""Which running jobs a waiting one has a right to by the min of its side, or by priority within its queue.

Which of them are chosen is not known here, but in `quotas.core.reclaiming.reclaim`, which says what the rights are.
"""

from collections.abc import Sequence

import numpy as np

from quotas.core.accounts.ledger import Ledger
from quotas.core.queues import admission
from quotas.core.queues.order import Unit
from quotas.core.reclaiming.targeting import CanPlace, Columns, Targeting
from quotas.core.reclaiming.victims import Cause, Target
from quotas.core.trees.tree import PreemptPolicy


class Rights(Targeting):
    def __init__(self, ledger: Ledger, preemptor: Unit, can_place: CanPlace) -> None:
        super().__init__(ledger, preemptor, can_place)
        self.claims = ledger.promised & (self.asked > 0)
        self.deciding = ledger.deciding_columns(self.asked)
        """Of each resource the one whose min decides about it; of a tree without flavors it is the resource itself."""
        self.own = ledger.held.used[self.path_rows[0]].copy()
        policy = ledger.tree.by_path[preemptor.leaf].attributes.preempt_policy
        self.by_priority = policy is PreemptPolicy.LOWER_PRIORITY

    def within_min(self) -> Columns:  # [level, resource]
        within = admission.within_min(self.ledger, self.asked, self.path_rows)
        return within[:, self.deciding] if len(self.deciding) else within

    def exceeds_own_min(self, gone: Sequence[int]) -> Columns:
        """Resources of which the queue, preempting by priority, would have more than its min and more than before.

        Priority decides which jobs use what a queue has; it is no right to more of what is guaranteed to others.
        """
        if not self.by_priority:
            return np.zeros_like(self.ledger.promised)
        own = [position for position in gone if self.candidates.leaf[position] == self.path_rows[0]]
        after = self.own + self.asked - self.candidates.sizes[own].sum(axis=0)
        most = np.maximum(self.own, self.ledger.min[self.path_rows[0]])
        return np.asarray((after > most) & self.ledger.promised) if own else np.zeros_like(self.ledger.promised)

    def has_place_without(self, gone: Sequence[int]) -> bool:
        if self.exceeds_own_min(gone).any():
            return False
        return self.can_place(frozenset(self.candidates.jobs[position].key for position in gone))

    def as_target_anywhere(self, position: int, within: Columns) -> Target | None:
        """The job as a target for its place on the nodes, whether or not the quota is short of what it frees."""
        if self.foreign[position]:
            return None
        is_own = self.candidates.leaf[position] == self.path_rows[0]
        resources = self.consumed if is_own else self.consumed & self.ledger.promised
        return self.as_target(position, np.broadcast_to(resources, within.shape), within)

    def as_target(self, position: int, short: Columns, within: Columns) -> Target | None:
        """The job as a target, if the preemptor has a right to it and it frees a resource that is short; else None."""
        if position in self.gone:
            return None
        going = self.going_with(position)
        rows = self.ledger.rows[int(self.candidates.leaf[position])]
        lca = self.parting(rows)
        level = self.level_of[rows[lca]]
        helps = short[level:].any(axis=0) & (self.candidates.sizes[going].sum(axis=0) > 0)
        if self.foreign[position]:
            helps &= ~self.ledger.gpus
        if not helps.any():
            return None
        if not lca:
            return self.target(going, Cause.LOWER_PRIORITY, rows[0], int(helps.argmax()))
        above = helps & self.above_min(position, rows[:lca], self.ledger.unstated[self.path_rows[level - 1]])
        right = helps | self.claims
        if not above.any() or (right & ~within[level - 1]).any():
            return None
        needs = tuple((level - 1, int(column)) for column in right.nonzero()[0])
        named = above & ~self.ledger.ignored
        column = int((named if named.any() else above).argmax())
        return self.target(going, Cause.ABOVE_MIN, rows[lca - 1], column, needs=needs)
