"""A divided job in the cycle: all its shares have room at once, or it waits and every cluster says how much it has."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.core.division.replicas import Division, Preference, Strategy
from jobs.core.division.spread import Spread
from jobs.core.gang.types import Gang
from jobs.core.policies.propagation import Affinity, PolicySpec
from jobs.core.reasons import Code
from jobs.core.scheduling.cycle import run_cycle
from tests.jobs.core.builders import NOON, cluster, gang, node, world

AGGREGATED = PolicySpec(division=Strategy())
BY_ROOM = PolicySpec(division=Strategy(Preference.BY_ROOM))


def job(pods: int, policy: PolicySpec = AGGREGATED, *, gpus: int = 1, name: str = "sweep", **division) -> Gang:
    divided = Division(pods, 0, **division)
    kind = {"api_version": "batch/v1", "kind": "Job"}
    return gang(name, masters=0, workers=pods, gpus=gpus, policy=policy, division=divided, **kind)


def sites(**gpus: list[int]) -> list:
    return [cluster(name, [node(free) for free in nodes]) for name, nodes in gpus.items()]


def shares(gangs, found) -> dict[str, int]:
    placed = run_cycle(world(gangs, found), NOON).placed
    return {share.cluster: share.pods for each in placed for share in each.placement.shares}


def test_it_keeps_a_job_on_one_cluster_that_holds_it():
    assert shares([job(8)], sites(north=[8], south=[4])) == {"north": 8}


def test_it_divides_what_no_cluster_holds_alone():
    assert shares([job(10)], sites(north=[8], south=[4])) == {"north": 7, "south": 3}


def test_it_divides_by_room_over_all_clusters():
    assert shares([job(6, BY_ROOM)], sites(north=[8], south=[4])) == {"north": 4, "south": 2}


def test_it_prints_the_result_as_karmada_does():
    (placed,) = run_cycle(world([job(6, BY_ROOM)], sites(north=[8], south=[4])), NOON).placed
    assert placed.result == "{north:4, south:2}" and placed.placement.where == "north, south"


def test_it_counts_pods_that_nodes_hold_and_not_what_is_free_in_sum():
    assert shares([job(3, gpus=4)], sites(north=[3, 3, 8], south=[5])) == {"north": 2, "south": 1}


def test_it_places_all_or_nothing_and_says_what_room_there_is():
    (waits,) = run_cycle(world([job(13)], sites(north=[8], south=[4])), NOON).waits
    told = {verdict.cluster: verdict for verdict in waits.reason.clusters}
    assert waits.reason.code is Code.NO_CLUSTER_FITS
    assert told["north"].message == "has room for 8 of 13 pods"
    assert told["south"].code is Code.NOT_ENOUGH_FREE


def test_it_says_when_there_is_room_but_not_as_the_policy_spreads():
    spread = PolicySpec(division=Strategy(spreads=(Spread("cluster", 1, 1),)))
    (waits,) = run_cycle(world([job(10, spread)], sites(north=[8], south=[4])), NOON).waits
    assert "cannot be spread as the policy asks" in waits.reason.message


def test_it_gives_static_weights_to_the_clusters_they_select():
    weights = ((Affinity(names=("north",)), 1), (Affinity(names=("south",)), 2), (Affinity(), 1))
    policy = PolicySpec(division=Strategy(Preference.BY_WEIGHT), weights=weights)
    assert shares([job(8, policy)], sites(north=[8], south=[8], west=[8])) == {"north": 2, "south": 4, "west": 2}


def test_it_overflows_into_the_next_tier():
    tiers = (Affinity(names=("north",)), Affinity(names=("south",)))
    policy = replace(AGGREGATED, affinities=tiers, tiers=(0, 1))
    assert shares([job(10, policy)], sites(north=[8], south=[40])) == {"north": 8, "south": 2}
    terms = replace(policy, tiers=(0, 0))
    assert shares([job(10, terms)], sites(north=[8], south=[40])) == {"south": 10}


def test_it_gives_no_second_share_to_a_cluster_that_has_one():
    assert shares([job(4, standing=("north",))], sites(north=[8], south=[4])) == {"south": 4}
    (waits,) = run_cycle(world([job(5, standing=("north",))], sites(north=[8], south=[4])), NOON).waits
    assert "north has a share of it already" in waits.reason.message


def test_it_never_divides_what_is_not_divisible():
    (waits,) = run_cycle(world([gang(workers=9, policy=AGGREGATED)], sites(north=[8], south=[4])), NOON).waits
    assert waits.reason.code is Code.NO_CLUSTER_FITS


_NODES = st.lists(st.integers(0, 4), min_size=1, max_size=3)
_JOBS = st.lists(st.tuples(st.integers(1, 8), st.integers(1, 3)), min_size=1, max_size=3)


@settings(deadline=None)
@given(_JOBS, _NODES, _NODES, st.sampled_from([AGGREGATED, BY_ROOM]))
def test_it_places_if_and_only_if_there_is_room_and_never_beyond(asked, north, south, policy):
    """One job after the other, by what they leave on nodes; aggregated or not, room is room."""
    gangs = [job(pods, policy, gpus=gpus, name=f"j{i}") for i, (pods, gpus) in enumerate(asked)]
    plan = run_cycle(world(gangs, sites(north=north, south=south)), NOON)
    free = {f"north-{i}": n for i, n in enumerate(north)} | {f"south-{i}": n for i, n in enumerate(south)}
    for placed in plan.placed:
        assert sum(share.pods for share in placed.placement.shares) == placed.gang.pods
        for promise in placed.placement.holds(placed.gang):
            for amounts, names in promise.nodes:
                for name in names:
                    free[name] -= amounts["nvidia.com/gpu"]
    assert min(free.values()) >= 0
    for waits in plan.waits:
        each = dict(waits.gang.roles[0][2])["nvidia.com/gpu"]
        assert sum(left // each for left in free.values()) < waits.gang.pods
