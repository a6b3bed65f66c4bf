"""Gangs whole or not at all, never above what a node offers, the same plan for the same world."""

from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.scheduler.fit import NodeInfo
from simulator.scheduler.packing import POD_GROUP, Group, Verdict, plan, waiting_of
from tests.support.examples import examples

GPU = "nvidia.com/gpu"


def nodes_of(*gpus: int) -> dict[str, NodeInfo]:
    offers = [{"cpu": 64_000, "pods": 110_000, GPU: n * 1000} for n in gpus]
    return {f"n{i}": NodeInfo(f"n{i}", offer, {}, []) for i, offer in enumerate(offers)}


def pod(name: str, gpus: int, *, group: str = "", age: int = 0, priority: int = 0) -> dict:
    resources = {"limits": {GPU: gpus}} if gpus else {}
    return {
        "metadata": {
            "name": name,
            "namespace": "ai",
            "uid": name,
            "labels": {POD_GROUP: group} if group else {},
            "creationTimestamp": f"2026-01-01T00:00:{age:02d}Z",
        },
        "spec": {"priority": priority, "containers": [{"name": "c", "resources": resources}]},
    }


def gang(name: str, count: int, gpus: int) -> list[dict]:
    return [pod(f"{name}-{i}", gpus, group=name) for i in range(count)]


def decide(pods: list[dict], world: dict[str, NodeInfo], groups: dict[str, Group] | None = None) -> Verdict:
    return plan([waiting_of(p) for p in pods], world, groups or {})


def where(verdict: Verdict) -> dict[str, str]:
    return {placed.pod.key.removeprefix("ai/"): placed.node for placed in verdict.bindings}


def test_it_places_a_pod_on_the_fullest_node_that_fits() -> None:
    world = nodes_of(8, 8)
    world["n1"].hold({GPU: 4000})
    assert where(decide([pod("a", 4)], world)) == {"a": "n1"}


def test_it_keeps_pods_without_devices_off_nodes_with_devices() -> None:
    assert where(decide([pod("a", 0)], nodes_of(8, 0))) == {"a": "n1"}


def test_it_says_what_is_short_in_the_words_of_the_scheduler() -> None:
    assert decide([pod("a", 9)], nodes_of(8, 8)).refusals == {
        "ai/a": "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
    }


def test_it_says_so_when_there_are_no_nodes() -> None:
    assert decide([pod("a", 1)], {}).refusals == {"ai/a": "no nodes available to schedule pods"}


def test_it_places_a_gang_whole() -> None:
    verdict = decide(gang("g", 4, 4), nodes_of(8, 8), {"podgroup/ai/g": Group(4, 4, 0)})
    assert sorted(where(verdict).values()) == ["n0", "n0", "n1", "n1"]


def test_it_places_nothing_of_a_gang_that_does_not_fit_whole() -> None:
    world = nodes_of(8, 4)
    verdict = decide(gang("g", 4, 4), world, {"podgroup/ai/g": Group(4, 4, 0)})
    assert verdict.bindings == []
    assert "Pod group needs 4 together, 3 can be placed" in verdict.refusals["ai/g-0"]
    assert all(not any(node.held.values()) for node in world.values())


def test_it_lets_a_smaller_job_pass_a_gang_that_does_not_fit() -> None:
    verdict = decide([*gang("g", 3, 4), pod("z", 2, age=9)], nodes_of(8), {"podgroup/ai/g": Group(3, 3, 0)})
    assert where(verdict) == {"z": "n0"}


def test_it_waits_for_the_siblings_and_for_the_group() -> None:
    few = decide(gang("g", 2, 1), nodes_of(8), {"podgroup/ai/g": Group(3, 2, 0)})
    assert few.refusals["ai/g-0"] == "not enough pods in the pod group: 2 of 3"
    assert decide(gang("g", 2, 1), nodes_of(8)).refusals["ai/g-0"] == 'pod group "ai/g" is not found'


def test_it_lets_a_replacement_join_a_gang_that_runs() -> None:
    assert where(decide(gang("g", 1, 4), nodes_of(8), {"podgroup/ai/g": Group(3, 3, 2)})) == {"g-0": "n0"}


def test_it_places_the_higher_priority_and_then_the_older_first() -> None:
    verdict = decide([pod("young", 8, age=5), pod("old", 8, age=1), pod("vip", 8, age=9, priority=10)], nodes_of(8, 8))
    assert set(where(verdict)) == {"vip", "old"}


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.integers(0, 8), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 8)), min_size=1, max_size=6),
)
def test_it_never_overfills_a_node_nor_splits_a_gang(nodes: list[int], gangs: list[tuple[int, int]]) -> None:
    world = nodes_of(*nodes)
    pods = [p for i, (count, gpus) in enumerate(gangs) for p in gang(f"g{i}", count, gpus)]
    groups = {f"podgroup/ai/g{i}": Group(count, count, 0) for i, (count, _) in enumerate(gangs)}
    verdict = decide(pods, world, groups)
    assert all(node.free(resource) >= 0 for node in world.values() for resource in node.offers)
    for i, (count, _) in enumerate(gangs):
        assert sum(name.startswith(f"g{i}-") for name in where(verdict)) in (0, count)
    assert where(decide(pods, nodes_of(*nodes), groups)) == where(verdict)
