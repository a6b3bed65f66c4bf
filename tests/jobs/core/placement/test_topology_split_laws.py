"""Laws of network domains against brute force: a required one is found if and only if there is one, a preferred one never
keeps a gang from its place, and ranks are a matter of the fleet alone."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.core.gang.requirements import GangRequirements, TopologyConstraint
from jobs.core.placement.types import NodeFacts
from tests.jobs.core.placement.cast import find, fleet
from tests.jobs.core.placement.strategies import Fleet, brute, demands, fleets
from tests.support.examples import examples

places = st.sampled_from(
    [(), ("z",), ("z", "p"), ("z", "p", "a"), ("z", "p", "b"), ("z", "q", "a"), ("", "", "a"), ("y", "", "b")]
)
wishes = st.builds(TopologyConstraint, st.sampled_from([None, 0, 1, 2]), st.booleans())


@st.composite
def wired(draw: st.DrawFn) -> Fleet:
    return {name: [replace(node, domain=draw(places)) for node in nodes] for name, nodes in draw(fleets).items()}


def holds(wanted: GangRequirements, nodes: list[NodeFacts]) -> bool:
    """On one node, or inside one domain that is narrow enough and has a name."""
    if not wanted.within.required:
        return brute(wanted, nodes)
    floor = wanted.within.level or 0
    domains = {node.domain[:depth] for node in nodes for depth in range(floor + 1, len(node.domain) + 1)}
    inside = [[n for n in nodes if n.domain[: len(d)] == d] for d in domains if d[-1]]
    alone = [] if wanted.apart else [[node] for node in nodes]
    return any(brute(wanted, some) for some in (*alone, *inside))


@settings(max_examples=examples(150), deadline=None)
@given(wired(), demands(), wishes)
def test_a_gang_is_placed_exactly_when_a_domain_it_may_be_in_holds_it(
    world: Fleet, asked: GangRequirements, within: TopologyConstraint
) -> None:
    wanted = replace(asked, within=within)
    found = find(fleet(world), wanted)
    assert (found is not None) == any(holds(wanted, nodes) for nodes in world.values())
    if found is not None:
        names = {name for each in found.nodes().values() for name in each}
        assert holds(wanted, [node for node in world[found.cluster] if node.name in names])


@settings(max_examples=examples(60), deadline=None)
@given(wired(), demands(), wishes)
def test_equal_fleets_seat_a_gang_equally(world: Fleet, asked: GangRequirements, within: TopologyConstraint) -> None:
    wanted = replace(asked, within=within)
    one, other = find(fleet(world), wanted), find(fleet({name: nodes[::-1] for name, nodes in world.items()}), wanted)
    assert (one and (one.cluster, one.nodes())) == (other and (other.cluster, other.nodes()))
