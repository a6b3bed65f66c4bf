"""Random fleets and demands, and the plain search that the engine is compared with."""

from hypothesis import strategies as st

from jobs.core.gang.requirements import HOSTNAME, AntiAffinity, GangRequirements, PodRequirements, RoleRequirements
from jobs.core.placement.types import NodeFacts
from jobs.core.taints import Taint, Toleration
from tests.jobs.core.placement.cast import GPU

TAINT = Taint("spot", "NoSchedule")

RACK = "rack"

Fleet = dict[str, list[NodeFacts]]

asks = st.builds(
    lambda gpus, cpu, picky, tolerant: PodRequirements.from_request(
        {GPU: gpus, "cpu": cpu, "pods": 1},
        selector=(("model", "a100"),) if picky else (),
        tolerations=(Toleration("spot", "Exists"),) if tolerant else (),
    ),
    st.integers(0, 4),
    st.integers(0, 3),
    st.booleans(),
    st.booleans(),
)


@st.composite
def demands(draw: st.DrawFn) -> GangRequirements:
    replicas = [draw(st.integers(1, 4)), *([draw(st.integers(1, 2))] if draw(st.booleans()) else [])]
    roles = ["worker", "ps"][: len(replicas)]
    pairs = [(a, b) for a in roles for b in roles if a <= b]
    apart = tuple(
        AntiAffinity(key, *draw(st.sampled_from(pairs)))
        for key in (HOSTNAME, RACK)
        if draw(st.sampled_from([False, False, True]))
    )
    return GangRequirements(
        tuple(RoleRequirements(r, n, draw(asks)) for r, n in zip(roles, replicas, strict=True)), apart
    )


@st.composite
def nodes(draw: st.DrawFn) -> NodeFacts:
    labels = {RACK: draw(st.sampled_from(["r1", "r2"]))} if draw(st.booleans()) else {}
    return NodeFacts(
        name=draw(st.sampled_from(["n1", "n2", "n3", "n4"])),
        allocatable={GPU: draw(st.integers(0, 8)), "cpu": draw(st.integers(0, 8)), "pods": 8},
        requested={GPU: draw(st.integers(0, 5)), "pods": 1},
        labels=labels | ({"model": "a100"} if draw(st.booleans()) else {}),
        taints=(TAINT,) if draw(st.sampled_from([False, False, True])) else (),
        usable=draw(st.sampled_from([True, True, True, False])),
    )


fleets = st.dictionaries(
    st.sampled_from(["east", "north", "south", "west"]), st.lists(nodes(), max_size=4, unique_by=lambda n: n.name)
)


def brute(wanted: GangRequirements, found: list[NodeFacts]) -> bool:
    """Pod by pod on every node, all ways."""
    pods = [part for part in wanted.parts for _ in range(part.replicas)]
    return search(wanted, pods, found, [])


def search(
    wanted: GangRequirements,
    pods: list[RoleRequirements],
    found: list[NodeFacts],
    placed: list[tuple[RoleRequirements, NodeFacts]],
) -> bool:
    if not pods:
        return True
    return any(
        may(wanted, pods[0], node, placed) and search(wanted, pods[1:], found, [*placed, (pods[0], node)])
        for node in found
    )


def may(
    wanted: GangRequirements, pod: RoleRequirements, node: NodeFacts, placed: list[tuple[RoleRequirements, NodeFacts]]
) -> bool:
    if pod.ask.refusal(node.kind(by_name=True)) is not None:
        return False
    here = [part for part, place in placed if place.name == node.name]
    for resource, asked in pod.ask.request:
        left = node.allocatable.get(resource, 0) - node.requested.get(resource, 0)
        if asked + sum(dict(part.ask.request).get(resource, 0) for part in here) > left:
            return False
    for rule in wanted.apart:
        value = node.labels.get(rule.key)
        near = here if rule.key == HOSTNAME else [p for p, o in placed if value and o.labels.get(rule.key) == value]
        if any(sorted((pod.role, part.role)) == [rule.one, rule.other] for part in near):
            return False
    return True
