"""What the engine chooses and keeps: nodes, clusters, promises. That it fits exactly is in test_engine_laws."""

from random import Random

import pytest

from fleet.core.prices import Prices
from jobs.core.admission.placement_cache import PlacementCache
from jobs.core.admission.snapshot import ClusterState
from jobs.core.gang.requirements import (
    HOSTNAME,
    NODE_NAME,
    AntiAffinity,
    Match,
    PodRequirements,
    TopologyConstraint,
    parse_pod_requirements,
)
from jobs.core.gang.types import CapacityHold
from jobs.core.placement.explaining import explain_clusters
from jobs.core.placement.nodes import capacity_index as placing_fleet
from jobs.core.placement.types import Assignment, Member, Mode, NodeFacts
from jobs.core.policies.propagation import Affinity, PolicySpec
from jobs.core.policies.weights import Weights
from jobs.core.taints import Taint
from tests.jobs.core.placement.cast import APIS, GPU, NOON, ask, demand, find, fleet, gang, node, workers


def used(found: object) -> dict[str, list[str]]:
    return found.nodes() if found else {}


def test_it_takes_the_broken_node_that_is_left_with_least() -> None:
    engine = fleet({"north": [node("n1"), node("n2", used=2), node("n3", used=5)]})
    assert used(find(engine, workers(1, 2))) == {"worker": ["n3"]}
    assert used(find(engine, workers(1, 4))) == {"worker": ["n2"]}
    assert used(find(engine, workers(1, 8))) == {"worker": ["n1"]}


def test_it_takes_the_fewest_nodes_for_a_big_gang() -> None:
    engine = fleet({"north": [node("n1", used=6), node("n2"), node("n3"), node("n4", used=4)]})
    assert used(find(engine, workers(16))) == {"worker": ["n2"] * 8 + ["n3"] * 8}
    assert used(find(engine, workers(10))) == {"worker": ["n2"] * 8 + ["n1"] * 2}


def test_it_leaves_the_scarce_model_to_those_who_can_use_no_other() -> None:
    models = [node(f"a{i}", labels={"model": "t4"}, gpus=4) for i in range(2)]
    models += [node(f"b{i}", labels={"model": "a100"}) for i in range(4)]
    engine = fleet({"north": models})
    assert used(find(engine, workers(1))) == {"worker": ["a0"]}
    engine.expect([(ask(1), 1.0), (ask(4, selector=(("model", "t4"),)), 1.0)])
    assert used(find(engine, workers(1))) == {"worker": ["b0"]}
    assert used(find(engine, demand(("worker", 1, ask(4, selector=(("model", "t4"),)))))) == {"worker": ["a0"]}
    engine.expect([])
    assert used(find(engine, workers(1))) == {"worker": ["a0"]}


def test_a_pod_without_devices_leaves_the_nodes_with_devices_alone() -> None:
    engine = fleet({"north": [node("n1"), node("n2", gpus=0)]})
    assert used(find(engine, demand(("worker", 1, ask(0, 4000))))) == {"worker": ["n2"]}


def test_it_uses_the_fuller_cluster_and_keeps_the_empty_one_whole() -> None:
    engine = fleet({"a": [node("n1"), node("n2")], "b": [node("n1", used=6), node("n2")]})
    assert find(engine, workers(1, 2)).cluster == "b"
    engine.weights = Weights(pack=0, fragments=0, spread=1)
    assert find(engine, workers(1, 2)).cluster == "a"


@pytest.mark.parametrize(
    ("better", "worse"),
    [({"prices": Prices(1.0)}, {"prices": Prices(2.0)}), ({"labels": {"data": "imagenet"}}, {})],
    ids=["cheaper", "near its data"],
)
def test_of_equal_clusters_it_takes_the_one_that_is(better: dict, worse: dict) -> None:
    members = {"a": Member("a", apis=APIS, **worse), "b": Member("b", apis=APIS, **better)}
    engine = fleet({"a": [node("n1")], "b": [node("n1")]}, **members)
    wanted = workers(1)
    wanted = type(wanted)(wanted.parts, data=frozenset({("data", "imagenet")}))
    assert find(engine, wanted).cluster == "b"


def test_of_equal_clusters_it_takes_the_one_where_fewer_jobs_failed() -> None:
    engine = fleet({"a": [node("n1")], "b": [node("n1")]})
    assert find(engine, workers(1)).cluster == "a"
    engine.set_failures({"a": 3.0})
    assert find(engine, workers(1)).cluster == "b"


def test_the_second_affinity_term_is_asked_only_when_the_first_has_no_room() -> None:
    engine = fleet({"a": [node("n1")], "b": [node("n1", used=7)]})
    policy = PolicySpec(affinities=(Affinity(names=("b",)), Affinity(names=("a",))))
    assert find(engine, workers(1), policy=policy).cluster == "b"
    assert find(engine, workers(2), policy=policy).cluster == "a"


def test_it_passes_over_clusters_the_filters_refuse() -> None:
    taint = Taint("maintenance", "NoSchedule")
    barred = {"cordoned": True}, {"ready": False}, {"taints": (taint,)}, {"synced": False}, {"apis": {}}
    for fields in barred:
        engine = fleet({"a": [node("n1")]}, a=Member("a", **{"apis": APIS, **fields}))
        assert find(engine, workers(1)) is None
    assert find(fleet({"a": [node("n1")]}), workers(1), excluded={"a": NOON.replace(hour=13)}) is None
    assert find(fleet({"a": [node("n1")]}), workers(1), excluded={"a": NOON}) is not None


def test_what_is_bound_is_gone_until_it_is_released() -> None:
    engine = fleet({"north": [node("n1")]})
    engine.bind("llama", find(engine, workers(2, 4)))
    assert find(engine, workers(1)) is None
    engine.release("llama")
    engine.release("llama")
    assert find(engine, workers(1, 8)) is not None


def test_what_is_bound_stays_beside_what_its_cluster_tells_of_the_node() -> None:
    engine = fleet({"north": [node("n1")]})
    engine.bind("llama", find(engine, workers(1, 4)))
    engine.set_node("north", node("n1", used=2))
    assert find(engine, workers(1, 3)) is None
    engine.release("llama")
    assert find(engine, workers(1, 6)) is not None


def test_a_node_that_goes_and_comes_back_still_carries_what_is_bound_on_it() -> None:
    engine = fleet({"north": [node("n1")]})
    engine.bind("llama", find(engine, workers(1, 4)))
    engine.drop_node("north", "n1")
    assert find(engine, workers(1)) is None
    engine.set_node("north", node("n1"))
    assert find(engine, workers(1, 5)) is None
    assert find(engine, workers(1, 4)) is not None


def test_holds_may_be_told_before_their_nodes_and_cluster() -> None:
    found = find(fleet({"north": [node("n1")]}), workers(1, 6))
    engine = fleet({})
    engine.bind("llama", found)
    engine.set_cluster(Member("north", apis=APIS))
    engine.set_node("north", node("n1"))
    assert find(engine, workers(1, 3)) is None
    assert find(engine, workers(1, 2)) is not None


def test_a_dropped_cluster_takes_what_was_bound_there_with_it() -> None:
    engine = fleet({"north": [node("n1")]})
    engine.bind("llama", find(engine, workers(1, 4)))
    engine.drop_cluster("north")
    assert find(engine, workers(1)) is None
    engine.release("llama")
    engine.set_cluster(Member("south", apis=APIS))
    engine.set_node("south", node("n1"))
    assert find(engine, workers(1, 8)).cluster == "south"


def test_aggregate_looks_at_the_sum_and_one_pod_and_promises_the_sum() -> None:
    loose = Member("a", apis=APIS, mode=Mode.AGGREGATE)
    engine = fleet({"a": [node("n1", used=4), node("n2", used=4), node("n3", used=2)]}, a=loose)
    assert find(engine, workers(1, 8)) is None
    found = find(engine, workers(2, 6))
    assert found.mode is Mode.AGGREGATE and not found.nodes()
    engine.bind("llama", found)
    assert find(engine, workers(1, 3)) is None
    engine.release("llama")
    assert find(engine, workers(1, 3)) is not None


def test_a_resource_nobody_offers_fits_nowhere_until_a_node_offers_it() -> None:
    engine = fleet({"north": [node("n1")]})
    wanted = demand(("worker", 1, PodRequirements.from_request({"rdma/hca": 1, "pods": 1})))
    assert find(engine, wanted) is None
    plain = node("n2")
    engine.set_node("north", type(plain)("n2", {**plain.allocatable, "rdma/hca": 1}))
    assert used(find(engine, wanted)) == {"worker": ["n2"]}


@pytest.mark.parametrize("key", [HOSTNAME, NODE_NAME])
def test_a_node_asked_for_by_name_is_the_one_taken(key: str) -> None:
    engine = fleet({"north": [node(f"n{i}", labels={HOSTNAME: f"n{i}"}) for i in range(4)]})
    assert used(find(engine, demand(("worker", 1, ask(terms=((Match(key, "In", ("n2",)),),)))))) == {"worker": ["n2"]}
    away = ask(8, terms=((Match(key, "NotIn", ("n0", "n2")),),))
    assert used(find(engine, demand(("worker", 2, away)))) == {"worker": ["n1", "n3"]}
    assert find(engine, demand(("worker", 3, away))) is None


def test_roles_that_stay_apart_never_share_a_node() -> None:
    engine = fleet({"north": [node("n1"), node("n2", used=7)]})
    pair = demand(("ps", 1, ask(0, 1000)), ("worker", 4, ask(1)), apart=(AntiAffinity(HOSTNAME, "ps", "worker"),))
    assert used(find(engine, pair)) == {"ps": ["n2"], "worker": ["n1"] * 4}


def test_it_reads_what_pod_templates_ask() -> None:
    anti = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "x"}}}
    template = {
        "metadata": {"labels": {"app": "x"}},
        "spec": {
            "nodeSelector": {"model": "a100"},
            "tolerations": [{"key": "spot", "operator": "Exists"}],
            "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [anti]}},
            "containers": [{"name": "c", "resources": {"limits": {GPU: "2"}}}],
        },
    }
    wanted = parse_pod_requirements([("worker", 2, template), ("ps", 0, template)])
    assert wanted.apart == (AntiAffinity(HOSTNAME, "worker", "worker"),)
    assert wanted.total == {GPU: 4, "pods": 2}
    one, two = (node(f"n{i}", labels={"model": "a100"}, taints=(Taint("spot", "NoSchedule"),)) for i in (1, 2))
    assert find(fleet({"north": [one]}), wanted) is None
    assert used(find(fleet({"north": [one, two]}), wanted)) == {"worker": ["n1", "n2"]}


def test_it_forgets_states_that_no_node_is_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placing_fleet, "MANY_STATES", 10)
    world = {name: [node(f"n{i}", domain=(f"p{i % 2}",)) for i in range(4)] for name in ("a", "b")}
    engine, rng, bound = fleet(world), Random(3), dict[int, Assignment]()  # noqa: S311
    for job in range(2000):
        if (found := find(engine, demand(("worker", rng.randint(1, 3), ask(rng.randint(0, 8), job % 50))))) is not None:
            engine.bind(job, found)
            bound[job] = found
        if len(bound) > 5:
            engine.release(gone := rng.choice(list(bound)))
            del bound[gone]
    anew = fleet(world)
    for job, found in bound.items():
        anew.bind(job, found)
    assert len(engine.fleet.states.rows) < 100
    assert all(find(engine, workers(n, 2)) == find(anew, workers(n, 2)) for n in range(1, 20))


RACKS = {"r1": ("p1", "r1"), "r2": ("p1", "r2"), "r3": ("p2", "r3")}


def racked(**free: int) -> list:
    """``r1a=8``: node r1a in rack r1 with 8 free."""
    return [node(name, used=8 - left, domain=RACKS[name[:2]]) for name, left in free.items()]


@pytest.mark.parametrize(
    ("pods", "nodes"),
    [(8, ["r1a"]), (16, ["r2a", "r2b"]), (24, ["r1a", "r1b", "r1c"]), (40, ["r1a", "r1b", "r1c", "r2a", "r2b"])],
    ids=["one node", "smallest rack that holds it", "larger rack", "one pod of racks"],
)
def test_it_keeps_a_gang_in_the_smallest_domain_that_holds_it(pods: int, nodes: list[str]) -> None:
    engine = fleet({"north": racked(r1a=8, r1b=8, r1c=8, r2a=8, r2b=8, r3a=8)})
    found = used(find(engine, workers(pods)))["worker"]
    assert sorted(set(found)) == nodes and len(found) == pods


def test_a_required_domain_is_kept_or_the_gang_waits() -> None:
    engine = fleet({"north": racked(r1a=8, r2a=8, r3a=8)})
    assert find(engine, workers(16, within=TopologyConstraint(level=1, required=True))) is None
    assert set(used(find(engine, workers(16, within=TopologyConstraint(level=0, required=True))))["worker"]) == {
        "r1a",
        "r2a",
    }
    assert find(engine, workers(24, within=TopologyConstraint(level=0, required=True))) is None
    assert find(engine, workers(24, within=TopologyConstraint(level=0))) is not None
    assert (
        find(fleet({"flat": [node("n1"), node("n2")]}), workers(16, within=TopologyConstraint(required=True))) is None
    )


def test_a_cluster_with_a_fitting_domain_is_preferred() -> None:
    engine = fleet({"a": racked(r1a=8, r3a=8), "b": racked(r1a=8, r1b=8)})
    assert find(engine, workers(16)).cluster == "b"


def test_the_same_question_has_the_same_answer() -> None:
    engine = fleet({"a": racked(r1a=8, r3a=8), "b": racked(r1a=8, r1b=8)})
    assert find(engine, workers(3)) == find(engine, workers(3))
    assert engine.find(gang(), workers(3), NOON) == find(engine, workers(3))


def test_a_node_that_offers_nothing_takes_nothing() -> None:
    engine = fleet({"north": [NodeFacts("bare", {}), node("a")]})
    assert find(engine, workers(8)) is not None and find(engine, workers(9)) is None


def test_what_others_took_from_a_promise_is_kept_on_the_rest_of_the_cluster_until_the_promise_ends() -> None:
    """The gang that was promised the node will be bound elsewhere: that room is not free."""
    engine = fleet({"north": [node("a"), node("b")]})
    engine.bind("first", found := find(engine, workers(8)))
    [taken] = {name for names in found.nodes().values() for name in names}
    engine.set_node("north", node(taken, used=3))
    assert find(engine, workers(6)) is None and find(engine, workers(5)) is not None
    [look] = explain_clusters(engine, gang(), workers(6), NOON)
    assert look.short == {GPU: 1}
    engine.release("first")
    assert find(engine, workers(8)) is not None


def test_it_knows_a_resource_of_which_no_node_has_anything_left() -> None:
    offered = {"cpu": 1000, "memory": 10, "pods": 10, "ephemeral-storage": 5, "nvidia.com/gpu": 4}
    places = PlacementCache([ClusterState(1, Member("north"), (NodeFacts("n0", offered, {"nvidia.com/gpu": 4}),))])
    places.set_node("north", NodeFacts("n0", offered, {}))
    assert places.engine.fleet.capacity.shape[1] >= len(offered)


def test_nodes_that_are_kept_until_others_leave_them_take_nothing_from_the_rest_of_the_cluster() -> None:
    engine = fleet({"north": [node("a", used=8), node("b")]})
    engine.hold(CapacityHold("kept", "north", {}, (({GPU: 8}, ("a",)),), waits=True))
    assert find(engine, workers(8)) is not None
    engine.release("kept")
    engine.hold(CapacityHold("promised", "north", {}, (({GPU: 8}, ("a",)),)))
    assert find(engine, workers(8)) is None
