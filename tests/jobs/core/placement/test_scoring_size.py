"""Where two clusters hold a gang alike, the smaller one is used, and the larger one stays free for who needs it."""

from jobs.core.gang.requirements import GangRequirements, PodRequirements, RoleRequirements
from jobs.core.placement.engine import Engine
from jobs.core.placement.types import Member, NodeFacts
from tests.jobs.core.placement.cast import APIS, GPU, NOON, gang


def fleet(**nodes: int) -> Engine:
    engine = Engine()
    for cluster, count in nodes.items():
        engine.set_cluster(Member(cluster, apis=APIS))
        for n in range(count):
            engine.set_node(cluster, NodeFacts(f"n{n}", {GPU: 8}))
    return engine


def lands(engine: Engine, workers: int) -> str:
    found = engine.find(
        gang(), GangRequirements((RoleRequirements("worker", workers, PodRequirements.from_request({GPU: 8})),)), NOON
    )
    return found.cluster if found else ""


def test_it_keeps_the_large_cluster_for_the_gang_that_only_it_can_hold() -> None:
    engine = fleet(large=6, middle=3, small=1)
    assert [lands(engine, workers) for workers in (1, 2, 3, 6)] == ["small", "middle", "middle", "large"]


def test_it_fills_the_fuller_of_two_clusters_of_one_size() -> None:
    engine = fleet(east=3, west=3)
    demand = GangRequirements((RoleRequirements("worker", 1, PodRequirements.from_request({GPU: 8})),))
    first = engine.find(gang(), demand, NOON)
    assert first is not None and first.cluster == "east"
    engine.bind("first", first)
    assert lands(engine, 2) == "east"
