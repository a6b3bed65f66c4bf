"""A gang as the scheduler knows it: waiting, or admitted, and the capacity it holds until its pods are bound. Plain values."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

from fleet.core import devices
from jobs.core.division.replicas import Division
from jobs.core.gang.requirements import GangRequirements, PodRequirements, RoleRequirements
from jobs.core.policies.propagation import PolicySpec
from jobs.core.reasons import Amounts
from quotas.core.accounts.ledger import Charge
from quotas.core.trees import amounts


@dataclass(frozen=True)
class Gang:
    """A waiting job, with everything a cycle may know of it. Without slots: what is derived is asked for again and again."""

    job_id: int
    name: str
    """``namespace/name``, the last tie-breaker of the order."""
    api_version: str
    kind: str
    roles: tuple[tuple[str, int, Amounts], ...]
    """(role, replicas, one pod's request), in the kind's order."""
    total: Amounts
    priority: int
    queued_at: datetime
    policy: PolicySpec | None
    attempt: int = 0
    """The number of its latest attempt; with ``generation``, what a plan is checked against when it is applied."""
    generation: int = 1
    excluded: Mapping[str, datetime] = field(default_factory=dict)
    """Clusters it failed on, and until when it is not placed there again."""
    leaf: str = ""
    """Its quota leaf; empty: none is its own."""
    leaf_fault: str = ""
    """Why the leaf it names is not its own."""
    preemptible: bool = True
    charged: bool = False
    """Its leaf is charged for it already: it fails over to another cluster, or its pods are not gone yet."""
    queued: bool = False
    """It waits in its queue; False: it fails over, and was admitted by its queue before."""
    uid: str = ""
    needs: GangRequirements | None = None
    """What its pods require of nodes beyond amounts; None: nothing."""
    division: Division | None = None
    """Set when it may be divided over clusters; ``roles`` and ``needs`` are then those of the pods that are not placed yet."""
    claims: tuple[str, ...] = ()
    """``namespace/name`` of the volume claims its pods mount."""
    bound_to: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """(claim, clusters that have its data) of the volume claims it has to run beside."""
    runtime_s: float | None = None
    """Declared run time in seconds; None: none is declared."""
    deadline_at: datetime | None = None
    """When it is ended at the latest; None: it has no deadline."""
    user: str = ""
    """The user who submitted it."""
    awaits: tuple[str, str] | None = None
    """Code and message of the reason why it may not start before other jobs have ended; None: it may."""
    has_claimed: bool = False
    """Others were stopped so that it may borrow: it has this right once (`quotas.core.reclaiming.borrowers`)."""
    stopped_for: int = 0
    """The job that it was stopped for, since it last started; 0: none."""
    flavors: tuple[tuple[str, int], ...] = ()
    """The GPUs of each flavor that it uses, as its leaf is charged for them; empty: not chosen, or there are no flavors."""
    needs_anyhow: GangRequirements | None = None
    """What its pods require of nodes whatever the flavor; set where ``needs`` has the labels of one."""

    @cached_property
    def demand(self) -> GangRequirements:
        if self.needs is not None:
            return self.needs
        return GangRequirements(
            tuple(
                RoleRequirements(role, replicas, PodRequirements.from_request(request))
                for role, replicas, request in self.roles
                if replicas
            )
        )

    @property
    def data_on(self) -> frozenset[str] | None:
        """The clusters that have the data of all its claims; None: it may run on any."""
        return frozenset.intersection(*(frozenset(on) for _, on in self.bound_to)) if self.bound_to else None

    @property
    def fit(self) -> str:
        """The fit its policy asks for; empty: the cluster's own."""
        return self.policy.fit if self.policy else ""

    @property
    def schedulers(self) -> frozenset[str]:
        """Add-ons that its pods ask to be placed by."""
        return self.needs.schedulers if self.needs is not None else frozenset()

    @property
    def asks_quota(self) -> bool:
        return bool(self.leaf) and not self.charged

    @property
    def asks_queue(self) -> bool:
        """Whether it may start only while its queue is open."""
        return bool(self.leaf) and (self.queued or not self.charged)

    @cached_property
    def charge(self) -> Charge:
        """What its leaf is charged when it is admitted."""
        return Charge(self.leaf, amounts.of_job({**self.total, **dict(self.flavors)}), self.preemptible)

    def of_no_flavor(self) -> "Gang":
        """The gang before a flavor was chosen for it."""
        return (
            self if self.needs_anyhow is None else replace(self, needs=self.needs_anyhow, flavors=(), needs_anyhow=None)
        )

    @property
    def pods(self) -> int:
        return sum(replicas for _, replicas, _ in self.roles)

    @property
    def devices(self) -> int:
        return devices.count(self.total)


@dataclass(frozen=True, slots=True)
class AdmittedGang:
    """A job that its leaf is charged for and that has a place: a candidate for preemption, or being evicted already."""

    job_id: int
    name: str
    charge: Charge
    priority: int
    started_at: datetime
    cluster: str
    total: Amounts
    attempt: int = 0
    pods: tuple[tuple[str, Amounts], ...] = ()
    """(node, one pod's request) of those that are bound."""
    leaves_for: int = 0
    """Job id of its preemptor; 0: it is not being preempted."""
    goes_to: str = ""
    """The cluster where the preemptor is to go."""
    lends: bool = False
    """The preemptor was not promised what it frees, and borrows it."""
    ordered_at: datetime | None = None
    """When its eviction was ordered."""
    until: datetime | None = None
    """When its grace period ends, or when it left."""
    hold_key: tuple[str, int] | None = None
    """Key of its open capacity hold."""
    other_hold_keys: tuple[Hashable, ...] = ()
    """Keys of its other holds: one for each share of a job placed in this very cycle."""
    deferred: bool = False
    """It runs on until the end of a min-runtime (``until``), and is evicted then."""
    admitted_at: datetime | None = None
    """Since when its leaf is charged for it; None: not known."""
    sizes: tuple[tuple[str, int], ...] = ()
    """The sizes in force of the roles that can be resized."""
    surplus: tuple["SurplusPod", ...] = ()
    """The pods that the scheduler may take from it while it runs on, in the order in which they would go."""
    fewer: tuple[tuple[str, int], ...] = ()
    """Not empty: this is not the job but the pods that it gives back, so many of each role (`jobs.core.preemption.parts`)."""
    unbound: tuple[Amounts, ...] = ()
    """Of pods that it gives back what those ask that are not bound yet: the job's hold has it."""

    @property
    def has_left(self) -> bool:
        """Of pods that are given back: whether all have gone, and neither use a node nor are charged any more."""
        return not (self.pods or self.charge.amounts)

    @property
    def leaving_key(self) -> Hashable:
        """What tells apart all that leaves: a job gives back pods for several preemptors, and once again for one."""
        return self.job_id, self.leaves_for, self.ordered_at, self.fewer

    @property
    def hold_keys(self) -> tuple[Hashable, ...]:
        return self.hold_key, *self.other_hold_keys


@dataclass(frozen=True, slots=True)
class SurplusPod:
    role: str
    request: Amounts
    node: str = ""
    """Where it is bound; empty: no pod is there for it, so that none leaves."""


@dataclass(frozen=True, slots=True)
class CapacityHold:
    """Capacity a gang holds on a cluster until its pods are bound and visible."""

    key: Hashable
    cluster: str
    total: Amounts
    nodes: tuple[tuple[Amounts, tuple[str, ...]], ...] = ()
    """(amounts, the nodes that each hold as much); empty: only the sum is held."""
    waits: bool = False
    """It takes what is or becomes free on its nodes: what others use there is not subtracted from the rest of the cluster."""
