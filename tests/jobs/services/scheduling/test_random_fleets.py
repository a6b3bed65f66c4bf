"""Random fleets through the services, judged from outside after every cycle (`served_fleet`)."""

import pytest

from jobs.models import Job
from jobs.services.scheduling import loop
from tests.jobs.services.scheduling.served_fleet import ServedFleet
from tests.jobs.services.scheduling.windowed_fleet import WindowedFleet
from tests.support.examples import IS_FULL

pytestmark = pytest.mark.django_db
STEPS = 25
SEEDS = range(60) if IS_FULL else (0, 4)
"""The fourth fails where no targets are searched for, where nothing is withdrawn that the next cycle would stop, and where
gangs start whatever window lies ahead.
"""


@pytest.fixture(autouse=True)
def no_cache_of_before():
    loop._idle_caches.clear()
    yield
    loop._idle_caches.clear()


@pytest.mark.parametrize("seed", SEEDS)
def test_promises_are_kept_and_no_cycle_undoes_the_one_before(seed):
    fleet = ServedFleet(seed)
    for _ in range(STEPS):
        fleet.step()


@pytest.mark.parametrize("seed", SEEDS)
def test_promises_are_kept_where_queues_and_users_share_over_time(seed):
    fleet = ServedFleet(seed, fair_share="OverTime")
    for _ in range(STEPS):
        fleet.step()


@pytest.mark.parametrize("seed", SEEDS)
def test_promises_are_kept_when_borrowers_have_had_their_min_runtime_and_not_before(seed):
    fleet = ServedFleet(seed, runtimes=(0, 60, 400, 3600))
    for _ in range(STEPS):
        fleet.step()


@pytest.mark.parametrize("seed", SEEDS if IS_FULL else SEEDS[1:])
def test_promises_are_kept_where_queues_level_what_they_borrow(seed):
    fleet = ServedFleet(seed, reclaim="FairShare")
    for _ in range(STEPS):
        fleet.step()
    assert IS_FULL or Job.objects.filter(claimed_at__isnull=False).exists()


@pytest.mark.parametrize("seed", SEEDS if IS_FULL else SEEDS[1:])
def test_promises_are_kept_and_nothing_is_started_in_the_place_of_a_window(seed):
    fleet = WindowedFleet(seed)
    for _ in range(STEPS if IS_FULL else 10):
        fleet.step()
