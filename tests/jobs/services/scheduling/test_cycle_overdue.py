"""A fleet whose scheduling cycles are requested and never completed says so, and an idle fleet does not."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db.models import F
from django.test import Client
from django.utils import timezone

from fleet.models import Heartbeat, LeaseRequests
from fleet.services.operations import lease_requests
from jobs.services.lifecycle import cycle_requests
from jobs.services.scheduling import loop
from jobs.services.scheduling.decisions import lease
from tests.jobs.services.broken import Broken, breaks_at
from tests.support import books
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
LONG = timedelta(minutes=5)


@pytest.fixture(autouse=True)
def processes_are_alive():
    loop._idle_caches.clear()
    for role in ("worker", "beat", "watcher"):
        Heartbeat.objects.create(role=role, instance=role, at=timezone.now())


def readyz() -> tuple[int, dict]:
    answer = Client().get("/readyz?verbose")
    return answer.status_code, answer.json()["checks"]["scheduler"]


def pass_time(by: timedelta = LONG) -> None:
    """As if everything recorded so far had happened earlier."""
    LeaseRequests.objects.update(asked_at=F("asked_at") - by, completed_at=F("completed_at") - by)


def fail_cycle() -> None:
    with pytest.raises(Broken):
        loop.run(breaks_at(2))


def test_it_says_that_every_cycle_fails_and_is_restored_by_the_next_that_is_completed(as_viewer):
    books.a_cluster()
    cycle_requests.request()
    assert books.cycle() == 0 and readyz()[1]["ok"]
    books.apply(pytorch_job("train", workers=0))
    fail_cycle()
    assert readyz()[0] == 200, "two minutes are not over"
    pass_time()
    fail_cycle()
    status, check = readyz()
    assert status == 503 and not check["ok"] and 290 < check["age_s"] < 400
    assert "no scheduling cycle was completed for 30" in check["detail"] and "jobs.schedule" in check["detail"]
    system = as_viewer.get("/api/v1/system/").json()
    assert not system["ok"] and check["detail"][:40] in str(system["checks"])
    assert books.cycle() == 1
    status, check = readyz()
    assert status == 200 and check["ok"] and check["age_s"] < 60


def test_more_requests_do_not_make_the_first_one_younger():
    cycle_requests.request()
    pass_time()
    for _ in range(3):
        cycle_requests.request()
    assert readyz()[0] == 503 and "ever" in readyz()[1]["detail"]


def test_an_idle_fleet_is_not_overdue_however_old_its_last_cycle_is():
    books.a_cluster()
    cycle_requests.request()
    books.cycle()
    pass_time(timedelta(days=3))
    status, check = readyz()
    assert status == 200 and check["age_s"] > 200_000
    cycle_requests.request()
    assert readyz()[0] == 200, "the request is new"


def test_a_fleet_without_any_request_is_ready():
    assert readyz() == (200, {"ok": True})


def test_a_request_that_comes_while_a_cycle_runs_is_overdue_only_when_no_cycle_follows():
    cycle_requests.request()
    served = cycle_requests.requests()
    pass_time()
    cycle_requests.request()
    cycle_requests.complete(served)
    assert readyz()[0] == 200
    pass_time()
    assert readyz()[0] == 503
    cycle_requests.complete(cycle_requests.requests())
    assert readyz()[0] == 200


def test_a_scheduler_that_completes_late_does_not_make_requests_unserved_that_another_has_served():
    cycle_requests.request()
    late = cycle_requests.requests()
    cycle_requests.request()
    cycle_requests.complete(cycle_requests.requests())
    cycle_requests.complete(late)
    pass_time()
    assert readyz()[0] == 200


def test_a_cycle_that_lost_its_lease_is_not_completed():
    books.a_cluster()
    books.apply(pytorch_job("train", workers=0))
    pass_time()
    readings = iter(range(10))

    def clock():
        if next(readings) == 1:
            assert lease.acquire("other", timezone.now() + timedelta(minutes=1)) is not None
        return timezone.now()

    assert loop.run(clock) == 0 and readyz()[0] == 503


def test_a_clock_that_was_set_back_hides_an_overdue_cycle_no_longer_than_the_bound():
    cycle_requests.request()
    LeaseRequests.objects.update(asked_at=F("asked_at") + timedelta(hours=3))
    cycle_requests.request()
    pass_time()
    assert readyz()[0] == 503


def test_a_database_of_a_version_that_recorded_nothing_is_judged_from_its_first_cycle_on():
    cycle_requests.request()
    LeaseRequests.objects.update(served=None)
    pass_time()
    assert readyz()[0] == 200
    books.a_cluster()
    fail_cycle()
    assert readyz()[0] == 503


def test_the_bound_is_a_setting(settings):
    settings.CONVOY_SCHEDULER = replace(settings.CONVOY_SCHEDULER, cycle_overdue_s=1000)
    cycle_requests.request()
    pass_time()
    assert readyz()[0] == 200


def test_it_costs_one_query(django_assert_num_queries):
    with django_assert_num_queries(1):
        lease_requests.progress(lease_requests.SCHEDULER)


def test_the_metrics_have_the_ages():
    def sample(name: str) -> list[float]:
        lines = Client().get("/metrics").content.decode().splitlines()
        return [float(line.split()[1]) for line in lines if line.startswith(f"convoy_scheduler_{name}_seconds ")]

    assert sample("last_successful_cycle_age") == [] and sample("unserved_request_age") == [0.0]
    books.a_cluster()
    cycle_requests.request()
    books.cycle()
    pass_time()
    assert 299 < sample("last_successful_cycle_age")[0] < 400 and sample("unserved_request_age") == [0.0]
    cycle_requests.request()
    pass_time()
    assert 299 < sample("unserved_request_age")[0] < 400


@pytest.fixture
def hints(monkeypatch):
    """The tasks sent to run a cycle."""
    sent = []
    monkeypatch.setattr(cycle_requests.events, "enqueue", lambda task, *_: sent.append(task))
    return sent


def test_requests_that_wait_together_are_sent_one_task(hints):
    books.a_cluster()
    hints.clear()
    for _ in range(3):
        cycle_requests.request()
    assert hints == ["jobs.schedule"] and cycle_requests.requests() >= 3


def test_a_request_is_sent_a_task_again_once_the_ones_before_it_are_served(hints):
    cycle_requests.request()
    books.cycle()
    cycle_requests.request()
    assert len(hints) == 2


def test_a_request_during_a_run_needs_no_task_and_is_known_to_be_unserved(hints):
    cycle_requests.request()
    served = cycle_requests.requests()
    cycle_requests.request()
    cycle_requests.complete(served)
    assert len(hints) == 1 and cycle_requests.requests() == served + 1
    cycle_requests.request()
    assert len(hints) == 1, "the run that has just ended one cycle begins another"


def test_a_request_is_sent_a_task_again_when_the_one_before_was_lost(hints):
    cycle_requests.request()
    pass_time(timedelta(seconds=2))
    cycle_requests.request()
    assert len(hints) == 2
