"""The ledger against a count from scratch, and the room it says was gained."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from fleet.core.members.capacity import Ledger, exceeds
from fleet.core.members.observed import ObservedNode, ObservedPod

NODES = ("n1", "n2", "n3")


def node(name, gpus=8, ready=True, cordoned=False):
    return ObservedNode(name, ready, cordoned, {}, [], {"gpu": gpus})


def pod(name, on="", gpus=1, finished=False, best_effort=False):
    counts = bool(on) and not finished
    request = {"gpu": gpus, "pods": 1} if counts else {}
    return ObservedPod("ns", name, on, counts, request, best_effort=best_effort)


def settled(*nodes, pods=()):
    ledger = Ledger()
    ledger.relist_nodes(nodes)
    ledger.relist_pods(pods)
    ledger.settle(ledger.difference())
    return ledger


pods = st.builds(
    pod, st.sampled_from("abcdef"), st.sampled_from(("", *NODES)), st.integers(0, 8), st.booleans(), st.booleans()
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("see_pod"), pods),
        st.tuples(st.just("lose_pod"), st.sampled_from("abcdef").map(lambda name: ("ns", name))),
        st.tuples(st.just("relist_pods"), st.lists(pods, unique_by=lambda p: p.name, max_size=6)),
        st.tuples(st.just("see_node"), st.builds(node, st.sampled_from(NODES), st.integers(0, 8), st.booleans())),
        st.tuples(st.just("lose_node"), st.sampled_from(NODES)),
        st.tuples(st.just("settle"), st.none()),
    ),
    max_size=40,
)


@given(steps)
def test_it_equals_a_count_from_scratch_and_tells_every_difference(steps):
    ledger, alive, nodes, written = Ledger(), {}, {}, {}
    for verb, value in steps:
        if verb == "settle":
            write(ledger, written)
        else:
            getattr(ledger, verb)(value)
            follow(alive, nodes, verb, value)
    write(ledger, written)
    best_effort = [pod for pod in alive.values() if pod.best_effort]
    expected = {name: (seen, count(alive.values(), name), count(best_effort, name)) for name, seen in nodes.items()}
    assert written == expected
    for _, requested, reclaimable in written.values():
        assert all(amount <= requested[resource] for resource, amount in reclaimable.items())


def write(ledger, written):
    difference = ledger.difference()
    written |= difference.changed
    for name in difference.gone:
        del written[name]
    ledger.settle(difference)


def follow(alive, nodes, verb, value):
    match verb:
        case "see_pod":
            alive[value.key] = value
        case "lose_pod":
            alive.pop(value, None)
        case "relist_pods":
            alive.clear()
            alive |= {p.key: p for p in value}
        case "see_node":
            nodes[value.name] = value
        case "lose_node":
            nodes.pop(value, None)


def count(alive, name):
    total = {}
    for each in alive:
        for resource, amount in each.request.items() if each.node == name and each.counts else ():
            total[resource] = total.get(resource, 0) + amount
    return {resource: amount for resource, amount in total.items() if amount}


def test_it_gains_room_when_a_pod_finishes():
    ledger = settled(node("n1"), pods=[pod("a", "n1")])
    ledger.see_pod(pod("a", "n1", finished=True))
    assert ledger.difference().gained


def test_it_gains_room_when_a_node_is_uncordoned():
    ledger = settled(node("n1", cordoned=True))
    ledger.see_node(node("n1"))
    assert ledger.difference().gained


def test_it_gains_nothing_when_a_pod_is_bound_or_a_node_lost():
    ledger = settled(node("n1"), node("n2"))
    ledger.see_pod(pod("a", "n1"))
    ledger.lose_node("n2")
    difference = ledger.difference()
    assert not difference.gained
    assert difference.gone == {"n2"}


def test_it_gains_nothing_on_an_overcommitted_node_until_there_is_room():
    ledger = settled(node("n1", gpus=4), pods=[pod("a", "n1", 4), pod("b", "n1", 4)])
    ledger.lose_pod(("ns", "a"))
    assert ledger.difference().changed["n1"][1] == {"gpu": 4, "pods": 1}
    assert not ledger.difference().gained


def test_it_tells_a_difference_again_until_it_is_settled():
    ledger = settled(node("n1"))
    ledger.see_pod(pod("a", "n1"))
    assert ledger.difference() == ledger.difference()


def test_it_starts_from_what_is_written():
    ledger = Ledger()
    ledger.remember({"old": (node("old"), {}, {}), "n1": (node("n1"), {}, {})})
    ledger.relist_nodes([node("n1")])
    assert (ledger.difference().changed, ledger.difference().gone) == ({}, {"old"})


def test_it_knows_the_place_that_all_nodes_share():
    ledger, region = Ledger(), "topology.kubernetes.io/region"
    ledger.relist_nodes([replace(node("a"), labels={region: "eu"}), replace(node("b"), labels={region: "eu"})])
    assert ledger.place(region) == "eu"
    ledger.see_node(replace(node("c"), labels={region: "us"}))
    assert ledger.place(region) == ""


def test_nothing_is_kept_beyond_what_pods_take_on_the_nodes_of_the_hold():
    kept = [({"gpu": 4}, ["n1", "n2"]), ({"cpu": 2}, ["n1"])]
    taken = [("n1", {"gpu": 4, "cpu": 2, "pods": 1}), ("n2", {"gpu": 4})]
    assert not exceeds(kept, taken)
    assert exceeds(kept, [("n1", {"gpu": 8, "cpu": 2})]), "both pods stand on the first node"
    assert exceeds(kept, [*taken[:1], ("", {})]), "the second pod has ended already"
    assert not exceeds([], taken)


def test_the_ledger_knows_what_a_pod_takes_and_that_one_that_ended_takes_nothing():
    ledger = settled(node("n1"), pods=[pod("a", "n1", gpus=2), pod("b", "n1", finished=True), pod("c")])
    assert [ledger.taken_by(("ns", name)) for name in "abc"] == [("n1", {"gpu": 2, "pods": 1}), ("", {}), ("", {})]


def test_a_pod_that_becomes_best_effort_is_counted_as_reclaimable_and_no_longer_when_it_goes():
    ledger = settled(node("n1"), pods=[pod("a", "n1", 2), pod("b", "n1", 3, best_effort=True)])
    assert (ledger.requested("n1")["gpu"], ledger.reclaimable("n1")["gpu"]) == (5, 3)
    ledger.see_pod(pod("a", "n1", 2, best_effort=True))
    assert ledger.difference().changed["n1"][2] == {"gpu": 5, "pods": 2}
    ledger.lose_pod(("ns", "b"))
    ledger.see_pod(pod("a", "n1", 2, finished=True, best_effort=True))
    assert (ledger.requested("n1"), ledger.reclaimable("n1")) == ({}, {})
