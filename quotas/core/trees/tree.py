"""The quota tree as frozen values: guaranteed amounts (min), limits (max), and the leaf each job belongs to.

Everything is keyed by the full path, ``root/team/leaf``: short names repeat. A tree that exists here is valid; reading one
and refusing it is `quotas.core.trees.parsing`'s business. Knows nothing of what is in use.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from functools import cached_property

from quotas.core.trees import flavors
from quotas.core.trees.amounts import UNLIMITED, Amounts
from quotas.core.trees.flavors import Flavors, Preference
from quotas.core.trees.time_rules import TimeRules
from quotas.core.trees.windows import Window

ROOT = "root"
NAME_LABELS = ("quota.scheduling.alibabacloud.com/name", "quota.scheduling.koordinator.sh/name")
"""A job says by one of these labels which leaf it belongs to; the label beats its namespace."""


class QueuePolicy(StrEnum):
    PRIORITY = "Priority"
    """A job that does not fit is passed over."""
    BLOCK = "Block"
    """A job that does not fit stops those behind it in the same queue."""
    ROUND = "Round"
    """On an inner node its children take turns; on a leaf the same as Priority."""


class PreemptPolicy(StrEnum):
    NEVER = "Never"
    LOWER_PRIORITY = "PreemptLowerPriority"


class FairShare(StrEnum):
    """What queues that borrow are compared by, and the users of a leaf."""

    NOW = "Now"
    """Queues by what they borrow at this moment; users are not compared."""
    OVER_TIME = "OverTime"
    """By their GPU-time lately, including what is placed and expected to run."""


class ReclaimPolicy(StrEnum):
    """What the children of a node reclaim from each other."""

    MIN = "Min"
    """What their min promises them, and nothing else."""
    FAIR_SHARE = "FairShare"
    """Also what a sibling borrows more of, by its weight (`quotas.core.reclaiming.borrowers`)."""


class OutsideJobs(StrEnum):
    """The treatment of jobs that belong to no leaf."""

    WAIT = "Wait"
    RUN = "Run"
    """They start without quota, and no leaf is charged for them."""


class ExcessPolicy(StrEnum):
    """What follows when an edit of the tree leaves more in use than it allows."""

    REFUSE = "Refuse"
    """The edit is refused."""
    WAIT = "Wait"
    """Nothing is evicted, and nothing starts there until enough jobs have ended."""
    TAKE_BACK = "TakeBack"
    """What is above the limit is evicted."""


class Submitter(StrEnum):
    """Of the roles of a user who submits to a queue, the one that allows most."""

    EDITOR = "editor"
    TEAM_LEAD = "team-lead"
    """Of the queue's node or one above it, or a quota-admin."""
    FLEET_ADMIN = "fleet-admin"


@dataclass(frozen=True, slots=True)
class Attributes:
    lendlimit: Amounts | None = None
    """How much of min others may borrow; a resource it does not name is not lent. None: all of min is lent."""
    weight: float = 1
    """0: it borrows after all others, and gives back before them."""
    preempt_policy: PreemptPolicy = PreemptPolicy.NEVER
    queue_policy: QueuePolicy = QueuePolicy.PRIORITY
    """Its own, or that of the nearest ancestor that states one."""
    cluster_affinity: tuple[str, ...] = ()
    """The only clusters its jobs may go to: those it names, less what an ancestor does not allow. Empty: any."""
    priority_classes: Mapping[str, int] = field(default_factory=dict)
    """Priority by the name of a PriorityClass: its own, and those of its ancestors."""
    max_priority: Mapping[Submitter, int] = field(default_factory=dict)
    """The highest priority that a job may be submitted with: the lowest of its own and its ancestors'; by role, not of all."""
    outside_jobs: OutsideJobs | None = None
    """Of the root alone. None: not stated, and they wait; an edit that leaves jobs outside the tree has to state it."""
    excess: ExcessPolicy = ExcessPolicy.REFUSE
    """Its own, or that of the nearest ancestor that states one."""
    fair_share: FairShare = FairShare.NOW
    """How its children, or the users of a leaf, share; its own, or that of the nearest ancestor that states one."""
    reclaim: ReclaimPolicy = ReclaimPolicy.MIN
    """What its children reclaim from each other; its own, or that of the nearest ancestor that states one."""
    borrowing_priority: int | None = None
    """From this priority on a job may evict what its siblings' jobs below it borrow; its own or inherited. None: never."""
    min_runtime: timedelta = timedelta()
    """How long after its admission a job is not evicted for the promise of another queue; its own or inherited."""
    min_runtime_ceiling: timedelta = timedelta(hours=1)
    """The longest `min_runtime` that a node may state; stated by the root."""
    time: TimeRules = TimeRules()
    """How long its jobs may wait and run."""
    flavors: Flavors = field(default_factory=dict)
    """The models of GPUs that the root tells apart; empty: none."""
    preference: Preference = Preference()
    """Which flavors its jobs may use; its own, or that of the nearest ancestor that states one."""
    windows: tuple[Window, ...] = ()
    """When it has another min or max; its own alone."""


@dataclass(frozen=True, slots=True)
class Node:
    path: str
    name: str
    parent: str
    """The parent's path; empty for the root."""
    min: Amounts = field(default_factory=dict)
    """Guaranteed; a resource that is missing is guaranteed 0."""
    max: Amounts = field(default_factory=dict)
    """The ceiling; a resource that is missing is limited by the ancestors alone."""
    namespaces: tuple[str, ...] = ()
    attributes: Attributes = Attributes()

    @property
    def windows(self) -> tuple[Window, ...]:
        return self.attributes.windows

    def held_back(self, resource: str) -> int:
        """How much of min is kept for itself while idle."""
        if self.attributes.lendlimit is None:
            return 0
        return self.min.get(resource, 0) - self.attributes.lendlimit.get(resource, 0)


@dataclass(frozen=True, slots=True)
class NoQuota:
    """No leaf is this job's, and why. The code is the one in the job's reason."""

    message: str
    code: str = "NoQuotaForNamespace"


@dataclass(frozen=True)
class Tree:
    nodes: tuple[Node, ...]
    """Parents before their children; the root is first."""

    @cached_property
    def by_path(self) -> Mapping[str, Node]:
        return {node.path: node for node in self.nodes}

    @cached_property
    def children(self) -> Mapping[str, tuple[Node, ...]]:
        children: dict[str, list[Node]] = defaultdict(list)
        for node in self.nodes[1:]:
            children[node.parent].append(node)
        return {path: tuple(nodes) for path, nodes in children.items()}

    @cached_property
    def leaves(self) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if node.path not in self.children)

    @cached_property
    def resources(self) -> tuple[str, ...]:
        """Every resource that any node names, and the GPUs of every flavor, in a fixed order."""
        named = {name for node in self.nodes for name in (*node.min, *node.max)}
        return tuple(sorted(named | {flavors.amount_name(name) for name in self.flavors}))

    @cached_property
    def without_min(self) -> frozenset[str]:
        """Names of GPUs whose min says nothing: the plain one where flavors have a min, else those of the flavors.

        What is promised is GPUs of one flavor, or of any: by both, a job could be within the one min and beyond the other.
        """
        of_flavors = {flavors.amount_name(name) for name in self.flavors}
        promised = any(flavors.has_min(node.min) for node in self.nodes[1:])
        return frozenset([flavors.GPU] if promised else of_flavors)

    @property
    def flavors(self) -> Flavors:
        return self.nodes[0].attributes.flavors

    @cached_property
    def has_windows(self) -> bool:
        return any(node.windows for node in self.nodes)

    @cached_property
    def shares_over_time(self) -> bool:
        """Whether any node shares by use over time."""
        return any(node.attributes.fair_share is FairShare.OVER_TIME for node in self.nodes)

    def to_root(self, path: str) -> tuple[Node, ...]:
        """The node and its ancestors, the node first."""
        node = self.by_path[path]
        return (node, *self.to_root(node.parent)) if node.parent else (node,)

    def nearest(self, path: str) -> Node:
        """The node at this path; where it is gone, the nearest one above it that is left."""
        while path not in self.by_path:
            path = path.rpartition("/")[0] or ROOT
        return self.by_path[path]

    def ceiling(self, path: str, resource: str) -> int:
        """The least max from the node up to the root."""
        return min(node.max.get(resource, UNLIMITED) for node in self.to_root(path))

    @property
    def outside_jobs_wait(self) -> bool:
        """Unless the tree states otherwise: beside jobs that run without quota no min is a promise."""
        return self.nodes[0].attributes.outside_jobs is not OutsideJobs.RUN

    def leaf_of(self, namespace: str, labels: Mapping[str, str]) -> Node | NoQuota:
        """The leaf a job belongs to: by its quota label, else by its namespace."""
        for label in NAME_LABELS:
            if label in labels:
                return self._labelled(label, labels[label])
        leaf = self._by_namespace.get(namespace)
        return leaf or NoQuota(
            f"namespace {namespace} is in no leaf of the quota tree, and the job names none by label"
        )

    def _labelled(self, label: str, name: str) -> Node | NoQuota:
        leaves = self._by_name.get(name, [])
        if len(leaves) == 1:
            return leaves[0]
        if leaves:
            paths = ", ".join(leaf.path for leaf in leaves)
            return NoQuota(f"label {label} names {name}, which is each of {paths}: bind the namespace to one instead")
        return NoQuota(f"label {label} names {name}, which is no leaf of the quota tree")

    @cached_property
    def _by_namespace(self) -> Mapping[str, Node]:
        return {namespace: leaf for leaf in self.leaves for namespace in leaf.namespaces}

    @cached_property
    def _by_name(self) -> Mapping[str, list[Node]]:
        nodes: dict[str, list[Node]] = defaultdict(list)
        for leaf in self.leaves:
            nodes[leaf.name].append(leaf)
        return nodes
