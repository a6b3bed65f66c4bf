"""What waits, as all parts of a cycle share it: the gangs, their equivalence classes, and the rules of their queues."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from jobs.core.admission.equivalence import EquivalenceClass, EquivalenceClasses
from jobs.core.admission.snapshot import Quota
from jobs.core.gang.types import Gang
from quotas.core.order import Unit
from quotas.core.tree import Attributes, PreemptPolicy, QueuePolicy

_NO_RULES = Attributes()


@dataclass(slots=True)
class Waiting:
    quota: Quota | None
    gangs: dict[int, Gang] = field(default_factory=dict)
    """By job; those that are not even considered are here too, but in no class."""
    classes: EquivalenceClasses = field(default_factory=EquivalenceClasses)
    nominees: set[int] = field(default_factory=set)
    """Jobs that running gangs are being preempted for."""

    def class_of(self, job: int) -> EquivalenceClass:
        return self.classes.by_job[job]

    def unit(self, job: int) -> Unit:
        return self.classes.units[job]

    def heads(self, group: EquivalenceClass, most: int) -> list[int]:
        """The first members, ``most`` at most; in a queue with policy Block only the one that is first of the queue, if any."""
        if not self.blocks(group.leaf):
            return [job for _, job in group.members[:most]]
        return [job for _, job in group.members[:1] if job == self.classes.first_of(group.leaf)]

    def gangs_of(self, jobs: Iterable[int]) -> list[Gang]:
        """In the order of their queues."""
        return [self.gangs[job] for job in sorted(jobs, key=lambda job: self.unit(job).place)]

    def blocks(self, leaf: str) -> bool:
        """Whether a gang that cannot start holds up those behind it."""
        return self._rules(leaf).queue_policy is QueuePolicy.BLOCK

    def preempts_by_priority(self, leaf: str) -> bool:
        return self._rules(leaf).preempt_policy is not PreemptPolicy.NEVER

    def clusters(self, leaf: str) -> tuple[str, ...]:
        """The clusters the queue may use; empty: all."""
        return self._rules(leaf).cluster_affinity

    def _rules(self, leaf: str) -> Attributes:
        node = self.quota.ledger.tree.by_path.get(leaf) if self.quota and leaf else None
        return node.attributes if node else _NO_RULES
