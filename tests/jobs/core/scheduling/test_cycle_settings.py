"""What an operator may set of a cycle changes what it decides."""

from dataclasses import replace
from datetime import timedelta

import pytest

from jobs.core.admission.placement_cache import PlacementCache
from jobs.core.policies.propagation import PolicySpec
from jobs.core.policies.weights import Weights
from jobs.core.scheduling.scheduler import Scheduler
from jobs.core.settings import CycleSettings
from tests.jobs.core.builders import NOON, cluster, gang, node

LATER = NOON + timedelta(minutes=1)


def reserved_for(settings: CycleSettings) -> object:
    """The gang that nodes are reserved for, when one holds half of a cluster and another of two nodes has waited a minute."""
    scheduler = Scheduler(places=PlacementCache([cluster("north", [node(4)] * 2)]), settings=settings)
    scheduler.put(gang("first", job_id=1, masters=0, workers=1, gpus=4))
    scheduler.run(NOON)
    scheduler.put(replace(gang("big", job_id=2, masters=0, workers=2, gpus=4), queued_at=NOON))
    scheduler.run(LATER)
    kept = scheduler.places.reservation
    return kept and kept.gang.job_id


@pytest.mark.parametrize(("patience_s", "job"), [(60, 2), (61, None)])
def test_it_reserves_nodes_for_a_big_gang_after_the_patience_that_is_set(patience_s, job):
    assert reserved_for(CycleSettings(reservation_patience_s=patience_s)) == job


@pytest.mark.parametrize("most", [1, 2])
def test_a_cycle_places_no_more_than_is_set(most):
    places = PlacementCache([cluster("north", [node(4)] * 4)])
    scheduler = Scheduler(places=places, settings=CycleSettings(max_placed=most))
    for number in range(3):
        scheduler.put(gang(f"j{number}", job_id=number + 1, masters=0, workers=1, gpus=4))
    plan = scheduler.run(NOON)
    assert len(plan.placed) == most and plan.more and scheduler.is_full(plan)


def chosen(weights: Weights, stated: tuple[tuple[str, float], ...] = ()) -> str:
    """Where a gang goes that fits on a small cluster and on a large one."""
    sites = [cluster("large", [node(4)] * 8), cluster("small", [node(4)] * 2)]
    scheduler = Scheduler(places=PlacementCache(sites, weights))
    scheduler.put(gang("one", job_id=1, masters=0, workers=1, gpus=4, policy=PolicySpec(score_weights=stated)))
    [placed] = scheduler.run(NOON).placed
    return placed.placement.cluster


def test_the_weights_that_are_set_decide_where_a_policy_states_none():
    spreading = Weights(size=0, spread=1)
    assert chosen(Weights()) == "small" and chosen(spreading) == "large"
    assert chosen(spreading, (("size", 5.0),)) == "small", "the policy's own weight goes before, the others stay as set"
    assert chosen(spreading, (("cost", 5.0),)) == "large"
