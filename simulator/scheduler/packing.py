"""Which waiting pod goes to which node: gangs whole or not at all, deterministically, never above what a node offers.

Pure: takes rooms, waiting pods and pod groups, answers bindings and the words for those left waiting.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from simulator.machinery.objects import Object, annotations_of, key_of, labels_of, namespace_of, uid_of
from simulator.scheduler.fit import Amounts, Ask, Room, ask_of, why_not
from simulator.scheduler.ranks import wished

POD_GROUP = "scheduling.x-k8s.io/pod-group"
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
    ask: Ask
    group: str
    order: tuple[int, str, str]
    role: str = ""
    least: int = 1
    """How many a gang needs that is written on its pods only, as Koordinator's are."""
    wish: str = ""
    """The node it should be on, if it fits there."""


@dataclass(frozen=True, slots=True)
class Group:
    """A PodGroup: how many it needs together, how many of them exist, how many have (had) a node."""

    need: int
    present: int
    placed: int
    close: frozenset[str] = frozenset()
    """Roles that should be on one node."""


@dataclass(frozen=True, slots=True)
class Placed:
    pod: Waiting
    node: str


@dataclass(slots=True)
class Verdict:
    bindings: list[Placed] = field(default_factory=list)
    refusals: dict[str, str] = field(default_factory=dict)
    """pod key -> why it waits"""


def group_of(pod: Object) -> str:
    """``api/namespace/name`` of the gang a pod waits for, by whichever mark it carries; empty when it waits for none."""
    labels, notes, namespace = labels_of(pod), annotations_of(pod), namespace_of(pod)
    if name := labels.get(POD_GROUP):
        return f"podgroup/{namespace}/{name}"
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
        ask=ask_of(pod),
        group=group_of(pod),
        order=(-priority, str(pod["metadata"].get("creationTimestamp") or ""), key_of(pod)),
        role=notes.get(VOLCANO_ROLE, ""),
        least=int(least) if least.isdigit() else 1,
        wish=wished(pod),
    )


def plan(pods: Iterable[Waiting], rooms: dict[str, Room], groups: Mapping[str, Group]) -> Verdict:
    """Places what fits, in order of priority and age; ``rooms`` carry the new holds afterwards."""
    verdict = Verdict()
    hopeless: dict[str, str] = {}
    for batch in _batches(pods):
        shape = "|".join(sorted(pod.ask.shape for pod in batch)) + f"|{groups.get(batch[0].group)}"
        words = hopeless.get(shape)
        if words is None:
            words = _place_batch(batch, rooms, groups, verdict)
        if words:
            hopeless[shape] = words
            verdict.refusals.update({pod.key: words for pod in batch})
    return verdict


def _batches(pods: Iterable[Waiting]) -> list[list[Waiting]]:
    together: dict[str, list[Waiting]] = {}
    for pod in sorted(pods, key=lambda p: p.order):
        together.setdefault(pod.group or pod.key, []).append(pod)
    return list(together.values())


def _place_batch(batch: list[Waiting], rooms: dict[str, Room], groups: Mapping[str, Group], verdict: Verdict) -> str:
    """Binds the batch into the verdict, or leaves everything as it was and says why."""
    name = batch[0].group
    group = groups.get(name) if name else Group(need=1, present=1, placed=0)
    if group is None:
        return f'pod group "{name.partition("/")[2]}" is not found'
    if group.present < group.need:
        return f"not enough pods in the pod group: {group.present} of {group.need}"
    placed: list[Placed] = []
    words: dict[str, str] = {}
    together = _together([pod for pod in batch if pod.role in group.close], rooms)
    for pod in sorted(batch, key=lambda p: _weight(p.ask.request), reverse=True):
        close = together if together and pod.role in group.close else None
        room = close or _wished(pod, rooms) or best_room(pod.ask, rooms.values())
        if room is None:
            words[pod.key] = refusal(pod.ask, rooms.values())
        else:
            room.hold(pod.ask.request)
            placed.append(Placed(pod, room.name))
    if group.placed + len(placed) >= group.need:
        verdict.bindings += placed
        verdict.refusals.update(words)
        return ""
    for one in placed:
        rooms[one.node].hold(one.pod.ask.request, -1)
    if not words:
        return f"not all pods of the pod group wait yet: {group.placed + len(placed)} of {group.need}"
    short = next(iter(words.values()))
    if not name:
        return short
    return f"{short} Pod group needs {group.need} together, {group.placed + len(placed)} can be placed."


def _wished(pod: Waiting, rooms: Mapping[str, Room]) -> Room | None:
    room = rooms.get(pod.wish)
    return room if room is not None and not why_not(pod.ask, room) else None


def _together(close: list[Waiting], rooms: dict[str, Room]) -> Room | None:
    """The fullest node that holds all of these pods, if there is one."""
    if not close:
        return None
    amounts = [pod.ask.request for pod in close]
    whole = {name: sum(amount.get(name, 0) for amount in amounts) for name in {n for a in amounts for n in a}}
    fitting = [room for room in rooms.values() if not any(why_not(pod.ask, room) for pod in close)]
    return best_room(replace(close[0].ask, request=whole), fitting)


def best_room(ask: Ask, rooms: Iterable[Room]) -> Room | None:
    """The fullest node that still fits, so that whole nodes stay free; nodes without devices for pods without."""
    fitting = [room for room in rooms if not why_not(ask, room)]
    devices = sorted(name for name, value in ask.request.items() if "/" in name and value > 0)

    def preference(room: Room) -> tuple[int, int, int, str]:
        left = sum(room.free(device) for device in devices)
        idle_devices = 0 if devices else sum(v for k, v in room.offers.items() if "/" in k)
        return left, idle_devices, room.free("cpu"), room.name

    return min(fitting, key=preference, default=None)


def refusal(ask: Ask, rooms: Iterable[Room]) -> str:
    """The scheduler's sentence, e.g. ``0/4 nodes are available: 4 Insufficient nvidia.com/gpu.``"""
    nodes = list(rooms)
    reasons = Counter(reason for room in nodes for reason in why_not(ask, room))
    if not nodes:
        return "no nodes available to schedule pods"
    return f"0/{len(nodes)} nodes are available: {', '.join(sorted(f'{n} {r}' for r, n in reasons.items()))}."


def _weight(request: Amounts) -> tuple[int, int, int]:
    devices = sum(value for name, value in request.items() if "/" in name)
    return devices, request.get("cpu", 0), request.get("memory", 0)
