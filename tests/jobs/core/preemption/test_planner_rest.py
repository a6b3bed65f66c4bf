"""No-flap through the whole scheduler: in fleets made to quarrel, admission and reclaim come to rest, and then do nothing.

A failing example shrinks. What kept such fleets going for ever: room was not kept for a preemptor whose victim left late; a
preemptor stood behind a job that never fits; room was kept still for one that had had its place and lost it since, and so
barred the one it had lost it to.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.core.preemption import planner
from jobs.core.scheduling.scheduler import Scheduler
from tests.jobs.core import fleets
from tests.jobs.core.builders import NOON

randoms = st.randoms(use_true_random=False)


@settings(max_examples=12, deadline=None)
@given(randoms)
@pytest.mark.parametrize("kind", [fleets.quarrelling, fleets.families])
def test_it_comes_to_rest_whoever_quarrels(kind, rng):
    fleet = kind(rng)
    assert fleet.rest() and min(fleet.free().values()) >= 0
    ledger = fleet.rules().ledger
    assert (ledger.held.used <= ledger.max).all()


@settings(max_examples=12, deadline=None)
@given(randoms, st.integers(1, 12))
def test_it_makes_the_same_plan_of_the_same_fleet_in_whatever_order(rng, cycles):
    fleet = fleets.families(rng)
    for _ in range(cycles):
        fleet.step()
    seen, runners = fleet.world(), list(fleet.running.values())

    def plan(world, running):
        scheduler = Scheduler.from_snapshot(world)
        made = scheduler.run(NOON)
        taken = planner.plan_preemption(scheduler, made, lambda: running, NOON).evictions
        places = [(each.gang.job_id, each.placement.cluster) for each in made.placed]
        return places, [(each.target.job_id, each.preemptor.job_id, each.goes_to) for each in taken]

    assert plan(seen, runners) == plan(fleets.backwards(seen), runners[::-1])
