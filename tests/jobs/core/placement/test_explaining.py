"""What is told of every cluster looked at: the filter, the amount short, fragmentation, never."""

from dataclasses import replace

from hypothesis import given, settings

from jobs.core.gang.requirements import HOSTNAME, AntiAffinity, TopologyConstraint
from jobs.core.placement.explaining import Cause, Look, explain_clusters, nearest_to_fit, never_fits
from jobs.core.placement.types import Member, Mode
from jobs.core.policies.propagation import Affinity, PolicySpec
from jobs.core.reasons import Code
from tests.jobs.core.placement.cast import APIS, GPU, NOON, ask, demand, find, fleet, gang, node, workers
from tests.jobs.core.placement.strategies import Fleet, demands, fleets
from tests.support.examples import examples


def look(engine, wanted, **fields) -> Look:
    return explain_clusters(engine, gang(**fields), wanted, NOON)[0]


def test_it_tells_fragmentation_from_shortage() -> None:
    engine = fleet({"north": [node(f"n{i}", used=5) for i in range(4)]})
    found = look(engine, workers(1, 8))
    assert found.cause is Cause.FRAGMENTED and found.short == {GPU: 8}
    assert found.message == (
        "has 12 nvidia.com/gpu free, but at most 3 nvidia.com/gpu on a node:"
        " 1 worker pods of 8 nvidia.com/gpu are asked, 0 fit"
    )
    short = look(engine, workers(2, 8))
    assert (short.cause, short.code, short.short) == (Cause.SHORT, Code.NOT_ENOUGH_FREE, {GPU: 4})
    assert not short.never and short.nodes == "nodes with 8 nvidia.com/gpu"


def test_it_tells_what_can_never_fit() -> None:
    engine = fleet({"north": [node("n1", used=3), node("n2")]})
    assert look(engine, workers(3, 8)).never
    too_large = look(engine, workers(1, 16))
    assert (too_large.cause, too_large.never) == (Cause.NODE_TOO_SMALL, True)
    assert never_fits(explain_clusters(engine, gang(), workers(1, 16), NOON))
    assert not never_fits(explain_clusters(engine, gang(), workers(2, 8), NOON))


def test_it_counts_the_nodes_each_rule_keeps_away() -> None:
    engine = fleet({"north": [node("n1"), node("n2"), node("n3", usable=False)]})
    found = look(engine, demand(("worker", 1, ask(selector=(("model", "h100"),)))))
    assert found.cause is Cause.NO_NODE_ALLOWED
    assert found.message == (
        "has no node that may run worker pods: they lack the label model=h100 of its nodeSelector (2 nodes);"
        " are not ready or cordoned (1 node)"
    )


def test_it_tells_the_filter_that_said_no() -> None:
    engine = fleet({"north": [node("n1")], "south": [node("n1")]}, north=Member("north", apis=APIS, cordoned=True))
    policy = PolicySpec(affinities=(Affinity(names=("north",)),))
    found = {each.cluster: each.code for each in explain_clusters(engine, gang(policy=policy), workers(1), NOON)}
    assert found == {"north": Code.CORDONED, "south": Code.NOT_SELECTED}


def test_it_tells_the_score_by_part_of_those_that_hold_it() -> None:
    engine = fleet({"a": [node("n1")], "b": [node("n1", used=4)], "c": [node("n1", used=8)]})
    found = explain_clusters(engine, gang(), workers(1), NOON)
    assert [each.cluster for each in found] == ["b", "a", "c"]
    assert found[0].parts["fragments"] == 1 and found[1].parts["fragments"] == 0
    assert found[0].score > found[1].score > found[2].score == 0
    assert found[0].verdict.fits and nearest_to_fit(found) == found[2]


def test_it_tells_when_roles_fit_alone_but_not_together() -> None:
    engine = fleet({"north": [node("n1", used=4)]})
    wanted = demand(
        ("master", 1, ask(3, 1)), ("worker", 1, ask(1)), apart=(AntiAffinity(HOSTNAME, "master", "worker"),)
    )
    assert look(engine, wanted).cause is Cause.NOT_TOGETHER
    engine = fleet({"north": [node("n1", domain=("p1",)), node("n2", domain=("p2",))]})
    assert look(engine, workers(16, within=TopologyConstraint(required=True))).cause is Cause.NO_DOMAIN


def test_it_tells_aggregate_clusters_by_their_sum() -> None:
    engine = fleet({"a": [node("n1", used=6)]}, a=Member("a", apis=APIS, mode=Mode.AGGREGATE))
    engine.bind("llama", find(engine, workers(1)))
    assert look(engine, workers(2)).short == {GPU: 1}


@settings(max_examples=examples(200), deadline=None)
@given(fleets, demands())
def test_it_explains_what_was_decided(world: Fleet, wanted) -> None:
    engine = fleet(world)
    looks = explain_clusters(engine, gang(), wanted, NOON)
    found = find(engine, wanted)
    assert [each.cluster for each in looks if each.code is Code.FITS][:1] == ([found.cluster] if found else [])
    assert all(each.message and (each.cause is Cause.NONE) == (each.code is Code.FITS) for each in looks)


@settings(max_examples=examples(100), deadline=None)
@given(fleets, demands())
def test_what_never_fits_does_not_fit_when_empty(world: Fleet, wanted) -> None:
    empty = {name: [replace(node, requested={}) for node in nodes] for name, nodes in world.items()}
    engine = fleet(empty)
    for each in explain_clusters(fleet(world), gang(), wanted, NOON):
        if each.never:
            assert find(engine, wanted, policy=PolicySpec(affinities=(Affinity(names=(each.cluster,)),))) is None
