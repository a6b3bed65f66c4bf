"""Queues share a fleet by weight over hours though each gang takes half of it, or all of it, and nodes are reserved."""

import pytest

from tests.jobs.core.builders import GPU
from tests.jobs.core.playing import VirtualFleet
from tests.quotas.core.builders import quota

HOUR = 3600.0
HOURS = 12


def leaf(name: str, low: int = 0, **attributes: str) -> dict:
    return quota(name, {GPU: low}, {GPU: 64}, attributes=attributes)


def played(*leaves: dict, pods: int, gangs: int, priority: int = 0, hours: int = HOURS) -> VirtualFleet:
    """64 GPUs; a submits its gangs of so many pods of 8 GPUs, b the same 100 s later; each runs for an hour."""
    fleet = VirtualFleet.of(64, *leaves)
    paths = ["a", "b"] if len(leaves) > 1 else ["team/a", "team/b"]
    for job in range(1, gangs + 1):
        fleet.submit(job, paths[0], pods, 8, HOUR, priority=priority)
        fleet.submit(1000 + job, paths[1], pods, 8, HOUR, at=100.0)
    fleet.play(hours * HOUR)
    return fleet


def share(fleet: VirtualFleet, path: str) -> float:
    """Of the GPU-hours used by all, those of one leaf."""
    hours = {each: sum(by_hour.values()) for each, by_hour in fleet.gpu_hours.items()}
    return hours.get(f"root/{path}", 0.0) / sum(hours.values())


@pytest.mark.parametrize(("weight", "expected"), [("1", 0.5), ("3", 0.75)])
@pytest.mark.parametrize(("pods", "gangs"), [(4, 20), (8, 12)])
def test_it_shares_by_weight_within_10_percent_between_gangs_of_half_the_fleet_and_of_all_of_it(
    weight, expected, pods, gangs
):
    fleet = played(leaf("a"), leaf("b", weight=weight), pods=pods, gangs=gangs)
    assert share(fleet, "b") == pytest.approx(expected, abs=0.1)
    assert fleet.kills == []


def test_it_shares_between_the_queues_of_one_team():
    fleet = played(quota("team", {GPU: 0}, {GPU: 64}, leaf("a"), leaf("b")), pods=4, gangs=20)
    assert share(fleet, "team/b") == pytest.approx(0.5, abs=0.1)


def test_it_lets_no_queue_take_more_by_a_higher_priority():
    fleet = played(leaf("a"), leaf("b"), pods=4, gangs=20, priority=9)
    assert share(fleet, "b") == pytest.approx(0.5, abs=0.1)


def test_it_serves_a_queue_within_its_min_before_shares():
    fleet = played(leaf("a"), leaf("b", low=64), pods=8, gangs=6, hours=6)
    assert share(fleet, "b") >= 4.5 / 6


def test_it_shares_in_each_hour_and_does_not_give_whole_hours_to_one_queue():
    fleet = played(leaf("a"), leaf("b"), pods=4, gangs=20)
    for hour in range(2, HOURS):
        used = [fleet.gpu_hours[f"root/{name}"][hour] for name in "ab"]
        assert min(used) >= 20, f"hour {hour}: {used}"
