"""Which equivalence classes were refused, by whom, so that a change reopens only those it may concern.

A class is undecided, refused by the quota at one node of the tree, or infeasible on every cluster. Released quota at a node
reopens the classes refused there; new capacity reopens the infeasible shapes that the placement cache names.
"""

from collections.abc import Hashable, Iterable

from jobs.core.admission.equivalence import EquivalenceClass
from jobs.core.scheduling.waiting import Waiting
from quotas.core.queues.admission import Refused


class RefusalIndex:
    def __init__(self, waiting: Waiting) -> None:
        self._waiting = waiting
        self.undecided: dict[EquivalenceClass, None] = {}
        """Classes whose answer is not known, or was yes."""
        self.stale_positions: dict[str, None] = {}
        """Leaves with policy Block in which positions have changed since they were last reported."""
        self._by_node: dict[str, dict[EquivalenceClass, None]] = {}
        self._by_shape: dict[Hashable, dict[EquivalenceClass, None]] = {}

    def added(self, group: EquivalenceClass) -> None:
        """A member was added: the class keeps its answer."""
        if not group.refused:
            self.undecided[group] = None
        self._positions_changed(group)

    def removed(self, group: EquivalenceClass) -> None:
        """A member was removed; a class without members is forgotten."""
        self._positions_changed(group)
        if group.members:
            return
        self.undecided.pop(group, None)
        for refusal in (group.refusal, *group.answers.values()):
            if refusal:
                self._by_node.get(refusal.path, {}).pop(group, None)
        for shape in group.shapes:
            self._by_shape.get(shape, {}).pop(group, None)

    def refuse(self, group: EquivalenceClass, refusal: Refused) -> None:
        """The quota refuses every member."""
        group.refusal, group.infeasible = refusal, False
        self._by_node.setdefault(refusal.path, {})[group] = None
        self._park(group)

    def mark_infeasible(self, group: EquivalenceClass) -> None:
        """No cluster can hold a member."""
        group.refusal, group.infeasible = None, True
        self._by_shape.setdefault(group.shape, {})[group] = None
        self._park(group)

    def refuse_all_flavors(self, group: EquivalenceClass) -> None:
        """No flavor that was tried is possible: the class waits for the one it is at, and is reopened for any of them."""
        for at, refusal in group.answers.items():
            if refusal is None:
                self._by_shape.setdefault(group.shape_at(at), {})[group] = None
            else:
                self._by_node.setdefault(refusal.path, {})[group] = None
        group.refusal = group.answers[group.at]
        group.infeasible = group.refusal is None
        self._park(group)

    def reopen(self, group: EquivalenceClass) -> None:
        for shape in group.shapes:
            self._by_shape.get(shape, {}).pop(group, None)
        self._reopen([group])

    def quota_released(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._reopen(self._by_node.pop(path, {}))

    def shapes_requeued(self, shapes: Iterable[Hashable]) -> None:
        for shape in shapes:
            self._reopen(self._by_shape.pop(shape, {}))

    def reopen_all(self) -> None:
        self._by_node.clear()
        self._by_shape.clear()
        self._reopen(self._waiting.classes.by_key.values())

    def is_held_up(self, group: EquivalenceClass) -> bool:
        """Whether the first gang of its queue, which has policy Block, cannot start."""
        leaf = group.leaf
        return self._waiting.blocks(leaf) and self._waiting.class_of(self._waiting.classes.first_of(leaf)).refused

    def _reopen(self, groups: Iterable[EquivalenceClass]) -> None:
        for group in groups:
            if not group.members:
                continue  # one of its flavors was released before, and it has ended since
            group.refusal, group.infeasible = None, False
            self.undecided[group] = None

    def _park(self, group: EquivalenceClass) -> None:
        self.undecided.pop(group, None)
        self._waiting.classes.changed[group] = None
        self._positions_changed(group)

    def _positions_changed(self, group: EquivalenceClass) -> None:
        if self._waiting.blocks(group.leaf):
            self.stale_positions[group.leaf] = None
