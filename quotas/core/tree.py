"""The quota tree as frozen values: guaranteed amounts (min), limits (max), and the leaf each job belongs to.

Everything is keyed by the full path, ``root/team/leaf``: short names repeat. A tree that exists here is valid; reading one
and refusing it is `quotas.core.parsing`'s business. Knows nothing of what is in use.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from quotas.core.amounts import UNLIMITED, Amounts

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
        """Every resource that any node names, in a fixed order."""
        return tuple(sorted({name for node in self.nodes for name in (*node.min, *node.max)}))

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
