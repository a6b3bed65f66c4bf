"""One gang whose place the database refuses: the others are placed in the same cycle, and it says what is in its way."""

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from fleet.api.http.recent_checks import RECENT
from fleet.changes import events
from fleet.models import Cluster, Event, Lease
from jobs import metrics
from jobs.core.settings import SchedulerSettings
from jobs.models import Attempt, Job, Work
from jobs.services.scheduling import loop
from jobs.services.scheduling.decisions import lease
from tests.support import books
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)

RETRY_AFTER = timedelta(seconds=SchedulerSettings().rejected_retry_s)


@pytest.fixture(autouse=True)
def no_picture_of_another_test():
    loop._idle_caches.clear()


def leave_work(name: str, cluster: Cluster, attempt: int = 1) -> Work:
    """A row of an attempt that its job is only about to begin."""
    job, now = books.job(name), timezone.now()
    return Work.objects.create(
        job_uid=job.uid, attempt=attempt, cluster=cluster, api_version=job.api_version, kind=job.kind,
        namespace=job.namespace, name=job.name, due_at=now, created_at=now,
    )  # fmt: skip


def cycle_at(now: datetime) -> int:
    return loop.run(lambda: now)


def states(*names: str) -> list[str]:
    return [books.job(name).state for name in names]


def three(cluster_gpus: int = 80) -> Cluster:
    north = books.a_cluster(gpus=cluster_gpus)
    books.apply(*(pytorch_job(name, workers=1) for name in ("a", "b", "c")))
    return north


def test_it_places_the_others_when_a_row_of_one_gang_is_in_the_way():
    north = three()
    leave_work("b", north)
    assert books.cycle() == 2
    assert states("a", "b", "c") == ["Placed", "Queued", "Placed"]
    assert not Attempt.objects.filter(job__name="b").exists()


def test_it_says_what_is_in_the_way_of_the_gang_and_what_to_do():
    north = three()
    leave_work("b", north)
    books.cycle()
    bad = books.job("b")
    assert bad.reason["code"] == bad.reason_code == "PlanRejected"
    for part in ("attempt 1", "on north", "submit the job again", "in 30 s"):
        assert part in bad.reason["message"]
    line = Event.objects.get(reason="PlanRejected")
    assert (line.type, line.message) == ("Warning", bad.reason["message"])


def test_it_tries_the_gang_again_only_after_a_while_and_places_it_once_the_row_is_gone(monkeypatch):
    asked = []
    monkeypatch.setattr(events, "enqueue", lambda task, *args, **options: asked.append((task, options)))
    now = timezone.now()
    left = leave_work("b", three())
    cycle_at(now)
    assert ("jobs.schedule", {"countdown_s": RETRY_AFTER.total_seconds()}) in asked
    version = books.job("b").resource_version
    for _ in range(3):
        assert cycle_at(now + timedelta(seconds=1)) == 0
    loop._idle_caches.clear()
    assert cycle_at(now + timedelta(seconds=2)) == 0
    assert books.job("b").resource_version == version, "it was tried again at once"
    left.delete()
    assert cycle_at(now + timedelta(seconds=3)) == 0
    assert cycle_at(now + 2 * RETRY_AFTER) == 1
    assert books.job("b").reason["code"] == "WaitingForMember"


def test_it_is_tried_again_at_once_when_the_clock_was_set_back():
    now = timezone.now()
    left = leave_work("b", three())
    cycle_at(now + timedelta(hours=1))
    left.delete()
    assert cycle_at(now) == 1


def test_a_job_that_is_suspended_and_resumed_is_tried_at_once(as_admin):
    left = leave_work("b", three())
    books.cycle()
    left.delete()
    job = books.job("b")
    for verb in ("suspend", "resume"):
        assert as_admin.post(f"/api/v1/jobs/{job.uid}/{verb}/").status_code == 202
    assert books.cycle() == 1


def test_many_rejected_gangs_are_each_told_and_every_other_is_placed():
    north = books.a_cluster(gpus=800)
    names = [f"g{number:02}" for number in range(20)]
    books.apply(*(pytorch_job(name, workers=1) for name in names))
    bad = {"g00", "g01", "g10", "g19"}
    for name in bad:
        leave_work(name, north)
    assert books.cycle() == 16
    assert set(Job.objects.filter(reason_code="PlanRejected").values_list("name", flat=True)) == bad


def test_the_room_of_a_rejected_gang_goes_to_the_next_at_once():
    north = three(cluster_gpus=4)
    leave_work("a", north)
    assert books.cycle() == 2
    assert states("a", "b", "c") == ["Queued", "Placed", "Placed"]


def test_it_writes_nothing_when_the_lease_is_lost_while_the_gangs_are_written_one_by_one():
    north = three()
    leave_work("b", north)
    assert lease.acquire("other", timezone.now()) is not None
    Lease.objects.update(expires_at=timezone.now() + timedelta(seconds=30))
    assert books.cycle() == 0 and states("a", "b", "c") == ["Queued"] * 3


def test_system_and_metrics_name_rejected_gangs(as_admin, as_viewer):
    def check(client):
        RECENT.forget()
        return {row["name"]: row for row in client.get("/api/v1/system/").json()["checks"]}["placements"]

    north = three()
    before = metrics.REJECTED._value.get()
    assert check(as_admin)["ok"]
    leave_work("b", north)
    books.cycle()
    assert not check(as_admin)["ok"] and "1 job" in check(as_admin)["detail"]
    assert "default/b" not in check(as_viewer)["detail"]
    assert metrics.REJECTED._value.get() == before + 1
