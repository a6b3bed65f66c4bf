"""Flavors in a cycle: on which model a gang starts, what its leaf is charged, which model it waits for, and why."""

from dataclasses import replace

import pytest

from jobs.core.gang.flavors import labels_by_role
from jobs.core.preemption import lending, planner
from jobs.core.reasons import Code
from jobs.core.scheduling.cycle import run_cycle
from jobs.core.scheduling.scheduler import Scheduler
from tests.jobs.core.builders import GPU, NOON, under
from tests.jobs.core.flavored import A100, H100, LABEL, job, leaf, limits, rules, running, site

BOTH = limits(32, h100=16, a100=16)
FLEET = [site("north", h100=2), site("south", a100=2)]


def started(plan):
    return {p.gang.name.partition("/")[2]: p.gang.flavors for p in plan.placed}


def test_it_charges_the_flavor_of_the_nodes_a_gang_is_given():
    quota = rules(leaf("a", None, **{"flavor-order": "h100,a100"}), total=BOTH)
    plan = run_cycle(under(quota, [job("one", "a", pods=2)], FLEET), NOON)
    assert started(plan) == {"one": ((H100, 16),)}
    placed = plan.placed[0]
    assert placed.placement.cluster == "north" and placed.gang.charge.amounts[GPU] == 16
    assert dict(placed.placement.assignment.demand.parts[0].ask.selector) == {LABEL: "H100"}


@pytest.mark.parametrize(
    "order, flavors", [("h100,a100", [H100, H100, A100, A100]), ("a100,h100", [A100, A100, H100, H100])]
)
def test_it_falls_back_in_the_order_of_the_queue_within_one_cycle(order, flavors):
    quota = rules(leaf("a", None, **{"flavor-order": order}), total=BOTH)
    plan = run_cycle(under(quota, [job(f"j{i}", "a", after_s=i) for i in range(5)], FLEET), NOON)
    assert started(plan) == {f"j{i}": ((name, 8),) for i, name in enumerate(flavors)}


def test_without_an_order_it_tries_the_flavors_by_name():
    quota = rules(leaf("a", None), total=BOTH)
    assert started(run_cycle(under(quota, [job("one", "a")], FLEET), NOON)) == {"one": ((A100, 8),)}


def test_no_flavor_is_used_above_its_max_while_nodes_of_it_are_free():
    quota = rules(leaf("a", None, limits(32, h100=8), **{"flavor-order": "h100"}), total=BOTH)
    plan = run_cycle(under(quota, [job(f"j{i}", "a", after_s=i) for i in range(2)], FLEET), NOON)
    assert started(plan) == {"j0": ((H100, 8),)}
    reason = plan.waits[0].reason
    assert reason.code is Code.QUOTA_EXCEEDED
    assert (
        reason.message
        == "h100: asks for 8 nvidia.com/gpu:h100: root/a has max 8 nvidia.com/gpu:h100, with 8 nvidia.com/gpu:h100 used"
    )


def test_a_flavor_that_a_queue_may_never_use_leaves_the_others_to_it():
    quota = rules(leaf("a", None, limits(32, h100=0), **{"flavor-order": "h100,a100"}), total=BOTH)
    assert started(run_cycle(under(quota, [job("one", "a")], FLEET), NOON)) == {"one": ((A100, 8),)}


def test_the_reason_names_every_flavor_that_was_tried():
    quota = rules(leaf("a", None, limits(32, h100=8), **{"flavor-order": "h100,a100"}), total=BOTH)
    plan = run_cycle(under(quota, [job("one", "a", pods=2)], [site("north", h100=2, a100=1)]), NOON)
    (wait,) = plan.waits
    assert wait.reason.message.startswith(
        "h100: asks for 16 nvidia.com/gpu:h100 and can never have it: root/a has max 8"
    )
    assert "; a100: 0/1 clusters fit: north" in wait.reason.message


def test_a_gang_that_names_a_model_gets_no_other():
    quota = rules(leaf("a", None, **{"flavor-order": "h100,a100"}), total=BOTH)
    gangs = [job("one", "a", on="a100"), job("two", "a", on="v100")]
    plan = run_cycle(under(quota, gangs, FLEET), NOON)
    assert started(plan) == {"one": ((A100, 8),)}
    assert "lack the label nvidia.com/gpu.product=" in plan.waits[0].reason.message


def test_a_job_that_asks_for_no_gpus_is_of_no_flavor():
    quota = rules(leaf("a", None), total=BOTH)
    assert started(run_cycle(under(quota, [job("one", "a", gpus=0)], FLEET), NOON)) == {"one": ()}


BORROWS = limits(32, h100=16, a100=16)


@pytest.mark.parametrize("when, flavors", [("MayStopSearch", [H100, H100]), ("TryNextFlavor", [H100, A100])])
def test_it_borrows_of_a_flavor_before_or_after_it_tries_the_next_one(when, flavors):
    fields = {"flavor-order": "h100,a100", "when-can-borrow": when}
    mine = leaf("a", limits(16, h100=8, a100=8), BORROWS, **fields)
    quota = rules(mine, leaf("b", limits(16, h100=8, a100=8), BORROWS), total=BOTH)
    plan = run_cycle(under(quota, [job(f"j{i}", "a", after_s=i) for i in range(2)], FLEET), NOON)
    assert started(plan) == {f"j{i}": ((name, 8),) for i, name in enumerate(flavors)}


def fleet_of_borrowers(when, a100=2):
    """b holds all H100, of which half is a's; a job of a waits."""
    fields = {"flavor-order": "h100,a100", "when-can-preempt": when}
    mine = leaf("a", limits(16, h100=8, a100=8), BORROWS, **fields)
    runs = [running(job(f"b{i}", "b"), "h100", "north", (f"north-h100-{i}",)) for i in range(2)]
    runs += [running(job(f"c{i}", "b"), "a100", "south", (f"south-a100-{i}",)) for i in range(2 - a100)]
    charges = [gang.charge for gang, _ in runs]
    quota = rules(mine, leaf("b", limits(16, h100=8, a100=8), BORROWS), total=BOTH, charges=charges)
    sites = [
        site("north", h100=2, holds=[hold for gang, hold in runs if gang.cluster == "north"]),
        site("south", a100=2, holds=[hold for gang, hold in runs if gang.cluster == "south"]),
    ]
    scheduler = Scheduler.from_snapshot(under(quota, [job("mine", "a")], sites))
    runners = [gang for gang, _ in runs]
    return lending.withdraw_lent(
        scheduler,
        scheduler.run(NOON),
        lambda plan: planner.plan_preemption(scheduler, plan, lambda: runners, NOON),
        NOON,
    )


def evicted(preemption):
    return [eviction.target.name for eviction in preemption.evictions]


def test_it_tries_the_next_flavor_before_it_preempts():
    plan, preemption = fleet_of_borrowers("TryNextFlavor")
    assert started(plan) == {"mine": ((A100, 8),)} and evicted(preemption) == []


def test_it_preempts_in_the_first_flavor_where_the_queue_states_so():
    plan, preemption = fleet_of_borrowers("MayStopSearch")
    assert started(plan) == {} and len(evicted(preemption)) == 1
    assert evicted(preemption)[0].startswith("default/b")


@pytest.mark.parametrize("when", ["MayStopSearch", "TryNextFlavor"])
def test_it_preempts_in_the_first_flavor_when_no_other_is_free(when):
    plan, preemption = fleet_of_borrowers(when, a100=0)
    assert started(plan) == {} and [name[:9] for name in evicted(preemption)] == ["default/b"]
    (eviction,) = preemption.evictions
    assert eviction.goes_to == "north"
    assert eviction.victim.message == "root/b is 8 nvidia.com/gpu:h100 above its min"


def test_roles_whose_selectors_name_different_models_are_charged_for_each():
    quota = rules(leaf("a", None, **{"flavor-order": "h100,a100"}), total=BOTH)
    mixed = job("mixed", "a", gpus=4)
    (worker,) = mixed.demand.parts
    head = replace(worker, role="head", replicas=2, ask=replace(worker.ask, selector=((LABEL, "A100"),)))
    total = {name: 3 * amount for name, amount in mixed.total.items()}
    mixed = replace(mixed, needs=replace(mixed.demand, parts=(worker, head)), total=total)
    plan = run_cycle(under(quota, [mixed], [site("north", h100=1, a100=1)]), NOON)
    assert started(plan) == {"mixed": ((A100, 8), (H100, 4))}
    assert labels_by_role(plan.placed[0].gang) == {"worker": {LABEL: "H100"}}


def test_a_gang_that_is_charged_already_keeps_its_flavor():
    quota = rules(leaf("a", None, **{"flavor-order": "h100,a100"}), total=BOTH)
    moving = replace(job("one", "a"), charged=True, flavors=((A100, 8),))
    scheduler = Scheduler.from_snapshot(under(quota, [moving], FLEET))
    scheduler.put(scheduler.gangs[moving.job_id])  # as when nodes are reserved for it
    placed = scheduler.run(NOON).placed[0]
    assert placed.placement.cluster == "south" and labels_by_role(placed.gang) == {"worker": {LABEL: "A100"}}
