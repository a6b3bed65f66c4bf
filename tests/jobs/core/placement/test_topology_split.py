"""Gangs over few switches, ranks in ring order, and how much the best domain lacks when one is required."""

import pytest

from jobs.core.gang.requirements import TopologyConstraint
from jobs.core.placement.explaining import Cause, explain_clusters
from jobs.core.topology import rank_assignment
from tests.jobs.core.placement.cast import GPU, NOON, ask, demand, find, fleet, gang, node, workers


def racked(*names: str, used: int = 0) -> list:
    """``p1r1a``: node a in rack r1 of block p1, with 8 GPUs."""
    return [node(name, used=used, domain=("z", name[:2], name[2:4])) for name in names]


def racks(found) -> list[str]:
    return [name[:4] for name in found.nodes()["worker"]]


def test_a_gang_too_large_for_a_rack_goes_over_as_few_as_can_be():
    engine = fleet({"north": racked("p1r1a", "p1r2a", "p1r3a", "p1r3b", "p1r3c", "p1r4a", "p1r4b")})
    assert set(racks(find(engine, workers(40)))) == {"p1r3", "p1r4"}
    assert set(racks(find(engine, workers(32)))) == {"p1r3", "p1r1"}


def test_a_gang_too_large_for_a_block_fills_whole_racks_of_the_fullest_block():
    engine = fleet({"north": racked("p1r1a", "p1r2a", "p2r1a", "p2r1b", "p2r2a", "p3r1a", used=4)})
    found = find(engine, workers(14))
    assert set(racks(found)) == {"p2r1", "p2r2", "p3r1"}
    assert rank_assignment.crossings(found.nodes()["worker"], found.where) == 3


def test_neighbours_in_the_ring_share_a_switch():
    names = [f"p1r{rack}{letter}" for letter in "abc" for rack in (1, 2, 3)]
    found = find(fleet({"north": racked(*names)}), workers(9, 8))
    seen = racks(found)
    assert len([i for i in range(9) if seen[i] != seen[i - 1]]) == 3
    assert found.nodes() == find(fleet({"north": racked(*reversed(names))}), workers(9, 8)).nodes()


def test_the_roles_of_one_gang_follow_each_other_in_the_ring():
    engine = fleet({"north": racked("p1r1a", "p1r2a", "p1r1b", "p1r2b")})
    found = find(engine, demand(("master", 1, ask(8)), ("worker", 3, ask(8)))).nodes()
    assert found["master"][0][:4] == found["worker"][0][:4] != found["worker"][1][:4] == found["worker"][2][:4]


def test_a_launcher_without_gpus_does_not_keep_the_workers_apart():
    engine = fleet({"north": racked("p1r1a", "p1r2a", "p1r2b", "p1r3a")})
    found = find(engine, demand(("launcher", 1, ask(0, cpu=1000)), ("worker", 20, ask(1))))
    assert len(set(racks(found))) == 2


def test_nodes_that_know_their_rack_only_are_in_a_block_without_a_name():
    engine = fleet({"north": [node(name, domain=("", "", name[0])) for name in ("a1", "a2", "b1")]})
    assert find(engine, workers(24, within=TopologyConstraint(1, True))) is None
    assert find(engine, workers(16, within=TopologyConstraint(2, True))).nodes()["worker"][::8] == ["a1", "a2"]
    assert find(engine, workers(24)) is not None


@pytest.mark.parametrize(("level", "word"), [(2, "asw"), (None, "network domain")])
def test_a_required_domain_that_lacks_room_says_how_much(level: int | None, word: str):
    engine = fleet({"north": [node("a", domain=("z1", "p", "r1")), node("b", domain=("z2", "q", "r2"), used=2)]})
    [look] = explain_clusters(engine, gang(), workers(10, within=TopologyConstraint(level, True)), NOON)
    assert look.cause is Cause.NO_DOMAIN and look.short == {GPU: 2}
    assert f"no {word} alone: 10 worker pods of 1 {GPU} are asked, the best one," in look.message
    assert "holds 8" in look.message
