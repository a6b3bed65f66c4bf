"""What would let a gang start: tried on the engine, told with what it takes, and put back."""

from dataclasses import replace
from datetime import timedelta

import pytest

from jobs.core.explain.changes import Occupant, largest_fitting, nearest_changes, nodes_to_add
from jobs.core.explain.remedies import Change
from jobs.core.placement.explaining import explain_clusters
from jobs.core.placement.types import Member
from jobs.core.policies.propagation import Affinity, PolicySpec
from jobs.core.taints import Taint
from tests.jobs.core.placement.cast import APIS, GPU, NOON, fleet, gang, node, workers

NORTH = Member("north", apis=APIS)
TAINT = Taint("gpu", "NoSchedule", "", NOON)


def told(engine, wanted, occupants=(), **fields) -> list[Change]:
    before = explain_clusters(engine, gang(**fields), wanted, NOON)
    found = nearest_changes(engine, gang(**fields), wanted, NOON, lambda _: list(occupants))
    assert explain_clusters(engine, gang(**fields), wanted, NOON) == before
    return found


def test_it_adds_as_many_nodes_as_it_takes() -> None:
    engine = fleet({"north": [node("n1", used=3), node("n2")]})
    [change] = told(engine, workers(2, 8))
    assert (change.kind, change.count) == ("AddNodes", 1)
    assert change.message.startswith("add 1 node with 8 nvidia.com/gpu to north")


def test_it_enlarges_the_cluster_that_needs_fewest_nodes_for_what_fits_nowhere_even_empty() -> None:
    nodes = {"north": [node(f"n{i}", used=8) for i in range(4)], "south": [node("s1")]}
    engine = fleet(nodes)
    looks = explain_clusters(engine, gang(), workers(6, 8), NOON)
    assert told(engine, workers(6, 8)) == []
    change = nodes_to_add(engine, gang(), workers(6, 8), NOON, looks, lambda name: nodes[name])
    assert change and (change.kind, change.cluster, change.count, change.beside) == ("AddNodes", "north", 2, 6)
    assert explain_clusters(engine, gang(), workers(6, 8), NOON) == looks
    smaller = largest_fitting(engine, workers(6, 8), looks)
    assert smaller and dict(smaller.amounts) == {GPU: 32}


def test_it_asks_for_smaller_pods_where_no_node_is_large_enough() -> None:
    engine = fleet({"north": [node("n1", used=8), node("n2")]})
    looks = explain_clusters(engine, gang(), workers(1, 16), NOON)
    smaller = largest_fitting(engine, workers(1, 16), looks)
    assert smaller and (smaller.role, dict(smaller.amounts)) == ("worker", {GPU: 8})


def test_it_waits_for_the_one_job_that_frees_least() -> None:
    nodes = [node("n1", used=8), node("n2", used=8)]
    engine = fleet({"north": nodes})
    small = Occupant("vision/small", ((nodes[0], {GPU: 2}),))
    half, whole = Occupant("vision/half", ((nodes[0], {GPU: 4}),)), Occupant("vision/whole", ((nodes[1], {GPU: 8}),))
    [change] = told(engine, workers(1, 4), [whole, half, small])
    assert change.names == ("vision/half",)
    [change] = told(engine, workers(2, 3), [half, small])
    assert set(change.names) == {"vision/half", "vision/small"}


@pytest.mark.parametrize(
    ("member", "kind"),
    [
        (replace(NORTH, cordoned=True), "Uncordon"),
        (replace(NORTH, ready=False), "RestoreCluster"),
        (replace(NORTH, taints=(TAINT,)), "Tolerate"),
    ],
    ids=["cordoned", "silent", "tainted"],
)
def test_it_lifts_what_alone_is_in_the_way(member, kind) -> None:
    engine = fleet({"north": [node("n1")]}, north=member)
    assert [change.kind for change in told(engine, workers(1))] == [kind]
    assert told(engine, workers(2, 8)) == []


def test_it_waits_for_a_failed_cluster_to_be_tried_again() -> None:
    engine = fleet({"north": [node("n1")]})
    [change] = told(engine, workers(1), excluded={"north": NOON + timedelta(minutes=5)})
    assert (change.kind, change.at) == ("WaitUntil", NOON + timedelta(minutes=5))


def test_it_selects_another_cluster_and_says_nothing_of_what_never_fits() -> None:
    engine = fleet({"north": [node("n1", used=8)], "south": [node("n1")]})
    policy = PolicySpec(affinities=(Affinity(names=("north",)),))
    assert [(c.kind, c.cluster) for c in told(engine, workers(1), policy=policy)] == [
        ("Select", "south"),
        ("AddNodes", "north"),
    ]
    assert told(engine, workers(1, 16)) == []
