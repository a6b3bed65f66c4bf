"""The cycle: order, one cluster for the whole gang, what the next gang sees. Fit itself: test_placement.py."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from jobs.core.policies.propagation import PolicySpec
from jobs.core.reasons import Code
from jobs.core.scheduling import cycle
from tests.jobs.core.builders import NOON, cluster, gang, node, world


def placed(plan: cycle.Plan) -> dict[str, str]:
    return {p.gang.name.split("/")[1]: p.placement.cluster for p in plan.placed}


def test_it_places_the_whole_gang_on_one_cluster():
    plan = cycle.run_cycle(world([gang("llama", workers=7)], [cluster("north"), cluster("south", [node(4)])]), NOON)
    assert placed(plan) == {"llama": "north"}


def test_it_prints_the_result_as_the_seed_does():
    plan = cycle.run_cycle(world([gang("llama")], [cluster("north")]), NOON)
    assert plan.placed[0].result == "{north:0,[{master 1} {worker 2}]}"


def test_it_places_nothing_of_a_gang_that_fits_nowhere_whole():
    plan = cycle.run_cycle(world([gang(workers=7)], [cluster("north", [node(4)]), cluster("south", [node(4)])]), NOON)
    assert placed(plan) == {} and plan.waits[0].reason.code is Code.NO_CLUSTER_FITS


def test_it_lets_the_next_gang_see_what_the_one_before_took():
    plan = cycle.run_cycle(world([gang("a", workers=4), gang("b", workers=4, after_s=1)], [cluster("north")]), NOON)
    assert placed(plan) == {"a": "north"}


def test_it_takes_the_higher_priority_first_and_then_the_older():
    gangs = [
        gang("young", workers=5, after_s=9),
        gang("old", workers=5),
        gang("urgent", workers=5, after_s=99, priority=1),
    ]
    plan = cycle.run_cycle(world(gangs, [cluster("north"), cluster("south")]), NOON)
    assert set(placed(plan)) == {"urgent", "old"}


def test_it_does_not_let_a_gang_that_waits_block_those_behind_it():
    plan = cycle.run_cycle(world([gang("huge", workers=99), gang("small", after_s=1)], [cluster("north")]), NOON)
    assert placed(plan) == {"small": "north"}


def test_it_waits_without_a_policy():
    plan = cycle.run_cycle(world([gang(policy=None)], [cluster("north")]), NOON)
    assert plan.waits[0].reason.code is Code.NO_POLICY


def test_it_waits_while_its_policy_suspends_scheduling():
    plan = cycle.run_cycle(world([gang(policy=PolicySpec(suspended=True))], [cluster("north")]), NOON)
    assert plan.waits[0].reason.code is Code.SCHEDULING_SUSPENDED


def test_it_says_that_there_is_no_cluster():
    plan = cycle.run_cycle(world([gang()], []), NOON)
    assert plan.waits[0].reason.code is Code.NO_CLUSTER


def nodes_of(placed: cycle.Placed) -> list[str]:
    """The node of each GPU it takes."""
    asked = {name: request["nvidia.com/gpu"] for name, _, request in placed.gang.roles}
    found = placed.placement.assignment.nodes()
    return [node for role, names in found.items() for node in names for _ in range(asked[role])]


sizes = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 4), st.integers(0, 3)), min_size=1, max_size=12)
fleets = st.lists(st.lists(st.integers(0, 8), min_size=0, max_size=4), min_size=1, max_size=4)


@given(sizes, fleets)
def test_it_never_places_more_than_a_cluster_has_and_always_gives_the_same_plan(gangs, fleet):
    made = [gang(f"g{i}", workers=w, gpus=g, priority=p, job_id=i) for i, (w, g, p) in enumerate(gangs)]
    clusters = [cluster(f"c{i}", [node(gpus) for gpus in nodes]) for i, nodes in enumerate(fleet)]
    plan = cycle.run_cycle(world(made, clusters), NOON)
    for i, nodes in enumerate(fleet):
        used = sum(p.gang.total["nvidia.com/gpu"] for p in plan.placed if p.placement.cluster == f"c{i}")
        assert used <= sum(nodes)
    assert len(plan.placed) + len(plan.waits) == len(made)
    assert placed(cycle.run_cycle(world(list(reversed(made)), clusters), NOON)) == placed(plan)


@given(sizes, fleets)
def test_it_leaves_nobody_waiting_who_still_fits_after_the_plan(gangs, fleet):
    made = [gang(f"g{i}", workers=w, gpus=g, job_id=i) for i, (w, g, _) in enumerate(gangs)]
    clusters = [cluster(f"c{i}", [node(gpus) for gpus in nodes]) for i, nodes in enumerate(fleet)]
    plan = cycle.run_cycle(world(made, clusters), NOON)
    for waits in plan.waits:
        for i, nodes in enumerate(fleet):
            taken = Counter(name for p in plan.placed if p.placement.cluster == f"c{i}" for name in nodes_of(p))
            gpus = waits.gang.roles[0][2]["nvidia.com/gpu"]
            left = [free - taken[f"c{i}-{n}"] for n, free in enumerate(nodes)]
            assert sum(min(free // gpus if gpus else 64, 64) for free in left) < waits.gang.pods
