"""Queues and users share a fleet by weight over hours, through the services and their rows, with drain reservations on."""

from dataclasses import replace

import pytest

from jobs.services.scheduling import loop
from jobs.services.scheduling.demand import use
from tests.jobs.services.scheduling.timed_fleet import KEEPS_CACHE_S, TimedFleet
from tests.support.books import team

pytestmark = pytest.mark.django_db
HOUR = 3600


@pytest.fixture(autouse=True)
def no_cache_of_before(settings):
    settings.CONVOY_SCHEDULER = replace(settings.CONVOY_SCHEDULER, cache_max_age_s=KEEPS_CACHE_S)
    loop._idle_caches.clear()
    use._last.clear()
    yield
    loop._idle_caches.clear()
    use._last.clear()


def share(fleet: TimedFleet, leaf: str) -> float:
    hours = fleet.gpu_hours()
    return hours.get(f"root/{leaf}", 0.0) / sum(hours.values())


def leaves(weight: str, **attributes: str) -> list[dict]:
    return [team("a", 0, 64, attributes=attributes), team("b", 0, 64, attributes={"weight": weight, **attributes})]


@pytest.mark.parametrize(("weight", "expected"), [("1", 0.5), ("3", 0.75)])
def test_two_queues_of_twenty_gangs_of_half_the_fleet_share_it_by_weight(weight, expected):
    fleet = TimedFleet(64, *leaves(weight))
    fleet.submit("a", 20, 4, 8, HOUR)
    fleet.submit("b", 20, 4, 8, HOUR, at=100)
    fleet.play(10 * HOUR)
    assert share(fleet, "b") == pytest.approx(expected, abs=0.1)
    assert sum(fleet.gpu_hours().values()) >= 0.95 * 10 * 64


@pytest.mark.parametrize(("weight", "expected"), [("1", 0.5), ("3", 0.25)])
def test_gangs_that_fill_the_fleet_share_twelve_hours_by_weight_whatever_restarts(weight, expected):
    fleet = TimedFleet(64, *leaves(weight), **{"fair-share": "OverTime"})
    fleet.restarts = {9, 22, 23, 40}
    fleet.submit("a", 14, 8, 8, HOUR)
    fleet.submit("b", 14, 8, 8, HOUR, at=100)
    fleet.play(12 * HOUR)
    assert share(fleet, "a") == pytest.approx(expected, abs=0.05)
    assert sum(fleet.gpu_hours().values()) >= 0.95 * 12 * 64


def test_five_hundred_jobs_of_one_user_do_not_hold_up_the_one_of_another():
    """It starts with the next place that becomes free, also where the queue has no more than its min."""
    fleet = TimedFleet(8, team("a", 8, 8, attributes={"fair-share": "OverTime"}))
    fleet.submit("a", 500, 1, 1, HOUR // 2, by="ada")
    [mine] = fleet.submit("a", 1, 1, 1, HOUR, at=60, by="grace")
    fleet.play(HOUR // 2)
    assert [at for at, name in fleet.starts() if name == mine] == [HOUR // 2]
    assert len(fleet.starts()) == 16
