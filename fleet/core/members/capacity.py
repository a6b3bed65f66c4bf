"""What a member's nodes offer and what their pods ask, kept up to date by what changed and never counted anew.

A change of one pod costs one addition on one node. `Ledger.settle` says which nodes are different from what was last
settled and whether room was gained; a caller that fails to write the difference simply does not settle it. Knows no
database, no wire, and nothing of jobs.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from sys import intern

from fleet.core.dra.inventory import DeviceInventory
from fleet.core.members.observed import Amounts, Key, ObservedNode, ObservedPod

NodeState = tuple[ObservedNode, Amounts, Amounts]
"""A node, the sum of what the pods on it ask, and what of that best-effort pods do, which may be taken back at any time."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What has to be written so that the world outside equals the ledger."""

    changed: dict[str, NodeState]
    gone: frozenset[str]
    gained: bool
    """Whether some usable node has more room of something than before."""


@dataclass(slots=True)
class Ledger:
    """One member's nodes and the pods bound to them."""

    devices: DeviceInventory = field(default_factory=DeviceInventory)
    """What claims ask for, which nodes have beside their allocatable resources."""
    _nodes: dict[str, ObservedNode] = field(default_factory=dict)
    _pods: dict[Key, tuple[str, Amounts]] = field(default_factory=dict)
    _requests: dict[tuple[tuple[str, int], ...], Amounts] = field(default_factory=dict)
    """Each different request once."""
    _requested: dict[str, Amounts] = field(default_factory=dict)
    _reclaimable: dict[str, Amounts] = field(default_factory=dict)
    """The part of ``_requested`` that best-effort pods ask."""
    _best_effort: set[Key] = field(default_factory=set)
    _settled: dict[str, NodeState] = field(default_factory=dict)
    _touched: set[str] = field(default_factory=set)

    def place(self, label: str) -> str:
        """The value of a topology label that all nodes share; empty when they do not."""
        values = {node.labels.get(label, "") for node in self._nodes.values()}
        return values.pop() if len(values) == 1 else ""

    def relist_nodes(self, nodes: Iterable[ObservedNode]) -> None:
        present = {node.name: node for node in nodes}
        self._touched |= self._nodes.keys() | self._settled.keys() | present.keys()
        self._nodes = present

    def see_node(self, node: ObservedNode) -> None:
        self._nodes[node.name] = node
        self._touched.add(node.name)

    def lose_node(self, name: str) -> None:
        self._nodes.pop(name, None)
        self._touched.add(name)

    def relist_pods(self, pods: Iterable[ObservedPod]) -> None:
        self._touched |= self._requested.keys()
        self._pods, self._requests, self._requested = {}, {}, {}
        self._reclaimable, self._best_effort = {}, set()
        for pod in pods:
            self.see_pod(pod)

    def see_pod(self, pod: ObservedPod) -> None:
        now = (intern(pod.node), self._shared(pod.request)) if pod.counts else None
        if self._pods.get(pod.key) == now and (pod.key in self._best_effort) == (pod.best_effort and pod.counts):
            return
        self.lose_pod(pod.key)
        if now:
            self._pods[pod.key] = now
            if pod.best_effort:
                self._best_effort.add(pod.key)
            self._add(pod.key, pod.node, pod.request, 1)

    def _shared(self, request: Amounts) -> Amounts:
        """The equal request of an earlier pod: most pods of a cluster are of a few templates."""
        return self._requests.setdefault(tuple(sorted(request.items())), request)

    def lose_pod(self, key: Key) -> None:
        before = self._pods.pop(key, None)
        if before:
            self._add(key, *before, -1)
            self._best_effort.discard(key)

    def taken_by(self, pod: Key) -> tuple[str, Amounts]:
        """The node that the pod takes room of, and how much; nothing when it takes none."""
        return self._pods.get(pod) or ("", {})

    def requested(self, node: str) -> Amounts:
        """The sum of what the pods on this node request; resources that none requests are absent."""
        return dict(self._requested.get(node) or {})

    def reclaimable(self, node: str) -> Amounts:
        """What of the sum best-effort pods request."""
        return dict(self._reclaimable.get(node) or {})

    def remember(self, states: dict[str, NodeState]) -> None:
        """Takes these, the rows as they are, for what is written; every node is compared with them next."""
        self._settled = states
        self._touched |= states.keys() | self._nodes.keys()

    def difference(self) -> Difference:
        changed: dict[str, NodeState] = {}
        gone: set[str] = set()
        gained = False
        self._touched |= self.devices.touched
        self.devices.touched.clear()
        for name in self._touched:
            before, node = self._settled.get(name), self._nodes.get(name)
            if node is None:
                if before:
                    gone.add(name)
                continue
            stand = self._state(node)
            if stand != before:
                changed[name] = stand
                gained = gained or _gains(before, stand)
        return Difference(changed, frozenset(gone), gained)

    def _state(self, node: ObservedNode) -> NodeState:
        offered, taken = self.devices.of_node(node.name)
        requested, reclaimable = self.requested(node.name), self.reclaimable(node.name)
        if offered:
            node = replace(node, allocatable={**node.allocatable, **offered})
        return node, {**requested, **taken}, reclaimable

    def settle(self, difference: Difference) -> None:
        """The difference has been written."""
        self._settled |= difference.changed
        for name in difference.gone:
            self._settled.pop(name, None)
        self._touched.clear()

    def _add(self, pod: Key, node: str, request: Amounts, sign: int) -> None:
        _count(self._requested, node, request, sign)
        if pod in self._best_effort:
            _count(self._reclaimable, node, request, sign)
        self._touched.add(node)


def _count(totals: dict[str, Amounts], node: str, request: Amounts, sign: int) -> None:
    total = totals.setdefault(node, {})
    for resource, amount in request.items():
        total[resource] = total.get(resource, 0) + sign * amount
        if not total[resource]:
            del total[resource]
    if not total:
        del totals[node]


def free(node: ObservedNode, requested: Amounts) -> Amounts:
    """What a usable node has left; an overcommitted resource has nothing left."""
    if not node.usable:
        return {}
    return {name: max(0, has - requested.get(name, 0)) for name, has in node.allocatable.items()}


def exceeds(kept: Sequence[tuple[Amounts, Sequence[str]]], taken: Iterable[tuple[str, Amounts]]) -> bool:
    """Whether more is kept on some node than is taken there: ``kept`` are amounts with the nodes that each keep as much, and
    ``taken`` are nodes with what one pod takes of them.
    """
    left: dict[str, Counter[str]] = defaultdict(Counter)
    for amounts, nodes in kept:
        for node in nodes:
            left[node].update(amounts)
    for node, amounts in taken:
        left[node].subtract(amounts)
    return any(amount > 0 for node in left.values() for amount in node.values())


def _gains(before: NodeState | None, now: NodeState) -> bool:
    was = free(*before[:2]) if before else {}
    return any(amount > was.get(name, 0) for name, amount in free(*now[:2]).items())
