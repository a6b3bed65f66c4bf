"""Laws of the engine against brute force on small fleets: placed if and only if somewhere fits; never above capacity, never
split, the same input the same plan; and however the fleet came about, equal fleets answer equally."""

from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.core.gang.requirements import GangRequirements, RoleRequirements
from jobs.core.placement.engine import Engine
from jobs.core.placement.types import Assignment, Mode, NodeFacts
from tests.jobs.core.placement.cast import find, fleet
from tests.jobs.core.placement.strategies import Fleet, asks, brute, demands, fleets, may, nodes
from tests.support.examples import examples


def legal(wanted: GangRequirements, found: Assignment, world: Fleet) -> bool:
    """Every pod on a node that may hold it, beside all others."""
    by_name = {node.name: node for node in world[found.cluster]}
    placed: list[tuple[RoleRequirements, NodeFacts]] = []
    for part in wanted.parts:
        names = found.nodes()[part.role]
        if len(names) != part.replicas:
            return False
        for name in names:
            if not may(wanted, part, by_name[name], placed):
                return False
            placed.append((part, by_name[name]))
    return True


@settings(max_examples=examples(500), deadline=None)
@given(fleets, demands(), st.lists(st.tuples(asks, st.just(1.0)), max_size=2))
def test_a_gang_is_placed_exactly_when_some_cluster_holds_it_whole(
    world: Fleet, wanted: GangRequirements, usual: list
) -> None:
    engine = fleet(world)
    engine.expect(usual)
    found = find(engine, wanted)
    assert (found is not None) == any(brute(wanted, nodes) for nodes in world.values())
    assert found is None or legal(wanted, found, world)


@settings(max_examples=examples(150), deadline=None)
@given(fleets, st.lists(demands(), max_size=6), st.data())
def test_equal_fleets_answer_equally_and_no_node_is_above_capacity(
    world: Fleet, gangs: list[GangRequirements], data: st.DataObject
) -> None:
    engine = fleet(world)
    bound: dict[int, Assignment] = {}
    for job, wanted in enumerate(gangs):
        if (found := find(engine, wanted)) is not None:
            engine.bind(job, found)
            bound[job] = found
        if bound and data.draw(st.booleans()):
            engine.release(job := data.draw(st.sampled_from(sorted(bound))))
            del bound[job]
    anew = fleet(dict(reversed(world.items())))
    for job, assignment in bound.items():
        anew.bind(job, assignment)
    assert not over(engine, bound)
    for wanted in gangs:
        assert find(engine, wanted) == find(anew, wanted)


def over(engine: Engine, bound: dict[int, Assignment]) -> list[str]:
    """Nodes with a hold that have less than nothing left of what is held."""
    assert all(found.mode is Mode.NODE_FIT for found in bound.values())
    above = []
    for cluster, site in engine.fleet.sites.items():
        for name, bucket in site.where.items():
            held = engine.fleet.held(cluster, name)
            above += [name for amount, left in zip(held, bucket.state.free, strict=False) if amount and left < 0]
    return above


@settings(max_examples=examples(150), deadline=None)
@given(fleets, st.lists(st.tuples(st.sampled_from(["east", "north", "south", "west"]), nodes()), max_size=6), demands())
def test_a_changed_fleet_is_as_if_it_had_always_been_so(world: Fleet, changes: list, wanted: GangRequirements) -> None:
    engine = fleet(world)
    find(engine, wanted)
    now = {name: {node.name: node for node in nodes} for name, nodes in world.items()}
    for cluster, node in changes:
        if cluster in now and node.name in now[cluster] and node.usable:
            engine.drop_node(cluster, node.name)
            del now[cluster][node.name]
        elif cluster in now:
            engine.set_node(cluster, node)
            now[cluster][node.name] = node
    assert find(engine, wanted) == find(fleet({name: list(found.values()) for name, found in now.items()}), wanted)
