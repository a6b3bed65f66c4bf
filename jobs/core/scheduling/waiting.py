"""What waits, as all parts of a cycle share it: the gangs, their equivalence classes, and the rules of their queues."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from jobs.core.admission.admission_pass import unit_of
from jobs.core.admission.equivalence import EquivalenceClass, EquivalenceClasses
from jobs.core.admission.snapshot import Quota
from jobs.core.gang.flavors import FlavorOption, options_of
from jobs.core.gang.types import Gang
from quotas.core.queues.order import Unit
from quotas.core.reclaiming import borrowers
from quotas.core.trees.flavors import FlavorChoice, Preference
from quotas.core.trees.tree import Attributes, FairShare, PreemptPolicy, QueuePolicy

_NO_RULES = Attributes()


@dataclass(slots=True)
class Waiting:
    quota: Quota | None
    gangs: dict[int, Gang] = field(default_factory=dict)
    """By job; those that are not even considered are here too, but in no class."""
    classes: EquivalenceClasses = field(default_factory=EquivalenceClasses)
    nominees: set[int] = field(default_factory=set)
    """Jobs that running gangs are being preempted for."""

    def new_class(self, gang: Gang, unit: Unit, *, is_own: bool) -> EquivalenceClass:
        """A class for gangs like this one; ``is_own``: for no other, however alike."""
        only = self.clusters(gang.leaf)
        quota_shape = unit.shape if gang.asks_quota else None
        own = gang.job_id if is_own else 0
        barred = (tuple(sorted(gang.excluded.items())), gang.bound_to)
        user = gang.user if self.compares_users(gang.leaf) else ""
        claim = gang.has_claimed, self.stopped_for(gang)
        has_windows = self.quota is not None and self.quota.ledger.tree.has_windows
        ends = (gang.runtime_s, gang.deadline_at) if has_windows else None
        shape = (
            gang.api_version,
            gang.kind,
            gang.demand,
            gang.division,
            id(gang.policy),
            barred,
            only,
            own,
            user,
            claim,
            ends,
        )
        leaf = gang.leaf if gang.asks_quota else ""
        return EquivalenceClass((quota_shape, shape), gang, leaf, only, options=self.options(gang))

    def class_of(self, job: int) -> EquivalenceClass:
        return self.classes.by_job[job]

    def unit(self, job: int) -> Unit:
        return self.classes.unit(job)

    def gang(self, job: int) -> Gang:
        """The gang, with the flavor that is tried now."""
        gang, group = self.gangs[job], self.classes.by_job.get(job)
        return group.of_flavor(gang) if group else gang

    def heads(self, group: EquivalenceClass, most: int) -> list[int]:
        """The first members, ``most`` at most; in a queue with policy Block only the one that is first of the queue, if any."""
        if not self.blocks(group.leaf):
            return [job for _, job in group.members[:most]]
        return [job for _, job in group.members[:1] if job == self.classes.first_of(group.leaf)]

    def gangs_of(self, jobs: Iterable[int]) -> list[Gang]:
        """In the order of their queues."""
        return [self.gang(job) for job in sorted(jobs, key=lambda job: self.classes.units[job].place)]

    def options(self, gang: Gang) -> tuple[FlavorOption, ...]:
        """The flavors the gang may use, in the order in which they are tried; none where its tree has none."""
        if self.quota is None or not self.quota.ledger.has_flavors or not gang.asks_quota:
            return ()
        return options_of(self.quota.ledger.tree, gang.leaf, gang)

    def preference(self, leaf: str) -> Preference:
        return self._rules(leaf).preference

    def stops_at_flavor(self, group: EquivalenceClass) -> bool:
        """Whether it waits for reclaim of one flavor rather than to try the next."""
        return len(group.options) > 1 and self.preference(group.leaf).when_can_preempt is FlavorChoice.STOP

    def blocks(self, leaf: str) -> bool:
        """Whether a gang that cannot start holds up those behind it."""
        return self._rules(leaf).queue_policy is QueuePolicy.BLOCK

    def preempts_by_priority(self, leaf: str) -> bool:
        return self._rules(leaf).preempt_policy is not PreemptPolicy.NEVER

    def compares_users(self, leaf: str) -> bool:
        """Whether the users of the queue take turns by what they have used."""
        return self._rules(leaf).fair_share is FairShare.OVER_TIME

    def may_claim(self, gang: Gang) -> bool:
        """Whether it may have others stopped so that it may borrow."""
        return self.quota is not None and gang.asks_quota and borrowers.may_claim(self.quota.ledger, unit_of(gang))

    def stopped_for(self, gang: Gang) -> int:
        """The job it was stopped for, which it has no claim against; 0 also where it has none at all."""
        return gang.stopped_for if gang.stopped_for and self.may_claim(gang) else 0

    def clusters(self, leaf: str) -> tuple[str, ...]:
        """The clusters the queue may use; empty: all."""
        return self._rules(leaf).cluster_affinity

    def _rules(self, leaf: str) -> Attributes:
        node = self.quota.ledger.tree.by_path.get(leaf) if self.quota and leaf else None
        return node.attributes if node else _NO_RULES
