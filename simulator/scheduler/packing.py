"""Decides on which node each waiting pod runs: gangs completely or not at all, deterministically, within the nodes' capacity.

No I/O: from nodes, waiting pods and pod groups it computes bindings, and a message for each pod that keeps waiting.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from simulator.machinery.objects import Object, annotations_of, key_of, labels_of, namespace_of, uid_of
from simulator.scheduler.fit import Amounts, NodeInfo, PodRequest, request_of, why_not
from simulator.scheduler.ranks import wished

POD_GROUP, SIGS_POD_GROUP = "scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io"
VOLCANO = "volcano"
"""The name of the scheduler that pods of its groups ask for."""
VOLCANO_GROUP = "scheduling.k8s.io/group-name"
VOLCANO_ROLE = "volcano.sh/task-spec"
TASK_AFFINITY = "volcano.sh/task-topology-affinity"
KOORDINATOR_GROUP = "gang.scheduling.koordinator.sh/name"
KOORDINATOR_LEAST = "gang.scheduling.koordinator.sh/min-available"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pod without a node."""

    key: str
    uid: str
    request: PodRequest
    group: str
    order: tuple[int, str, str]
    role: str = ""
    least: int = 1
    """The minimum size of a gang that has no PodGroup, as with Koordinator."""
    wish: str = ""
    """The preferred node."""


@dataclass(frozen=True, slots=True)
class Group:
    """A PodGroup: its minimum size, the number of its pods that exist, and the number that have (or had) a node."""

    need: int
    present: int
    placed: int
    close: frozenset[str] = frozenset()
    """Roles that should run on one node."""


@dataclass(frozen=True, slots=True)
class Placed:
    pod: Waiting
    node: str


@dataclass(slots=True)
class Verdict:
    bindings: list[Placed] = field(default_factory=list)
    refusals: dict[str, str] = field(default_factory=dict)
    """Why each waiting pod waits, by its key."""


def group_of(pod: Object) -> str:
    """``api/namespace/name`` of the pod's gang, from its labels or annotations. Empty if it is in no gang."""
    labels, notes, namespace = labels_of(pod), annotations_of(pod), namespace_of(pod)
    if name := labels.get(POD_GROUP):
        return f"podgroup/{namespace}/{name}"
    if name := labels.get(SIGS_POD_GROUP):
        return f"sigs/{namespace}/{name}"
    if pod["spec"].get("schedulerName") == VOLCANO and (name := notes.get(VOLCANO_GROUP)):
        return f"{VOLCANO}/{namespace}/{name}"
    name = notes.get(KOORDINATOR_GROUP)
    return f"koordinator/{namespace}/{name}" if name else ""


def waiting_of(pod: Object) -> Waiting:
    notes = annotations_of(pod)
    least = notes.get(KOORDINATOR_LEAST, "1")
    priority = int((pod.get("spec") or {}).get("priority") or 0)
    return Waiting(
        key=key_of(pod),
        uid=uid_of(pod),
        request=request_of(pod),
        group=group_of(pod),
        order=(-priority, str(pod["metadata"].get("creationTimestamp") or ""), key_of(pod)),
        role=notes.get(VOLCANO_ROLE, ""),
        least=int(least) if least.isdigit() else 1,
        wish=wished(pod),
    )


def plan(pods: Iterable[Waiting], nodes: dict[str, NodeInfo], groups: Mapping[str, Group]) -> Verdict:
    """Places the pods that fit, in order of priority and age. The new holds are added to ``nodes``."""
    verdict = Verdict()
    unschedulable: dict[str, str] = {}
    for batch in _batches(pods):
        shape = "|".join(sorted(pod.request.shape for pod in batch)) + f"|{groups.get(batch[0].group)}"
        message = unschedulable.get(shape)
        if message is None:
            message = _place_batch(batch, nodes, groups, verdict)
        if message:
            unschedulable[shape] = message
            verdict.refusals.update({pod.key: message for pod in batch})
    return verdict


def _batches(pods: Iterable[Waiting]) -> list[list[Waiting]]:
    together: dict[str, list[Waiting]] = {}
    for pod in sorted(pods, key=lambda p: p.order):
        together.setdefault(pod.group or pod.key, []).append(pod)
    return list(together.values())


def _place_batch(
    batch: list[Waiting], nodes: dict[str, NodeInfo], groups: Mapping[str, Group], verdict: Verdict
) -> str:
    """Adds the bindings of the batch to the verdict. If it cannot be placed, changes nothing and returns the reason."""
    name = batch[0].group
    group = groups.get(name) if name else Group(need=1, present=1, placed=0)
    if group is None:
        return f'pod group "{name.partition("/")[2]}" is not found'
    if group.present < group.need:
        return f"not enough pods in the pod group: {group.present} of {group.need}"
    placed: list[Placed] = []
    messages: dict[str, str] = {}
    common = _common_node([pod for pod in batch if pod.role in group.close], nodes)
    for pod in sorted(batch, key=lambda p: _weight(p.request.amounts), reverse=True):
        close = common if common and pod.role in group.close else None
        node = close or _preferred_node(pod, nodes) or best_node(pod.request, nodes.values())
        if node is None:
            messages[pod.key] = refusal(pod.request, nodes.values())
        else:
            node.hold(pod.request.amounts)
            placed.append(Placed(pod, node.name))
    if group.placed + len(placed) >= group.need:
        verdict.bindings += placed
        verdict.refusals.update(messages)
        return ""
    for binding in placed:
        nodes[binding.node].hold(binding.pod.request.amounts, -1)
    if not messages:
        return f"not all pods of the pod group wait yet: {group.placed + len(placed)} of {group.need}"
    first = next(iter(messages.values()))
    if not name:
        return first
    return f"{first} Pod group needs {group.need} together, {group.placed + len(placed)} can be placed."


def _preferred_node(pod: Waiting, nodes: Mapping[str, NodeInfo]) -> NodeInfo | None:
    node = nodes.get(pod.wish)
    return node if node is not None and not why_not(pod.request, node) else None


def _common_node(close: list[Waiting], nodes: dict[str, NodeInfo]) -> NodeInfo | None:
    """The fullest node on which all of these pods fit, if there is one."""
    if not close:
        return None
    amounts = [pod.request.amounts for pod in close]
    whole = {name: sum(amount.get(name, 0) for amount in amounts) for name in {n for a in amounts for n in a}}
    fitting = [node for node in nodes.values() if not any(why_not(pod.request, node) for pod in close)]
    return best_node(replace(close[0].request, amounts=whole), fitting)


def best_node(request: PodRequest, nodes: Iterable[NodeInfo]) -> NodeInfo | None:
    """The fullest node on which the pod fits, so that whole nodes stay free. Pods without devices prefer nodes without."""
    fitting = [node for node in nodes if not why_not(request, node)]
    devices = sorted(name for name, value in request.amounts.items() if "/" in name and value > 0)

    def preference(node: NodeInfo) -> tuple[int, int, int, str]:
        free_devices = sum(node.free(device) for device in devices)
        idle_devices = 0 if devices else sum(v for k, v in node.offers.items() if "/" in k)
        return free_devices, idle_devices, node.free("cpu"), node.name

    return min(fitting, key=preference, default=None)


def refusal(request: PodRequest, nodes: Iterable[NodeInfo]) -> str:
    """The scheduler's message, such as ``0/4 nodes are available: 4 Insufficient nvidia.com/gpu.``"""
    infos = list(nodes)
    reasons = Counter(reason for node in infos for reason in why_not(request, node))
    if not infos:
        return "no nodes available to schedule pods"
    return f"0/{len(infos)} nodes are available: {', '.join(sorted(f'{n} {r}' for r, n in reasons.items()))}."


def _weight(request: Amounts) -> tuple[int, int, int]:
    devices = sum(value for name, value in request.items() if "/" in name)
    return devices, request.get("cpu", 0), request.get("memory", 0)
