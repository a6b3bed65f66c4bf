"""The database's clock steps by an hour and is set right with jobs in all states: none is lost, doubled, stuck or failed."""

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from fleet.models import Cluster
from fleet.services.clusters import freshness
from jobs.models import Attempt, Job, Work
from jobs.services.follow import sweep
from jobs.services.lifecycle import works
from jobs.services.scheduling import loop
from jobs.services.submission.changes import actions
from tests.support import books
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
PLACED = {"running": 1, "starting": 1, "sending": 1, "failing": 1, "paused": 1}
"""The attempts of each job; `waiting` has none."""


class Fleet:
    """One cluster of ten GPUs that is watched, and whose heartbeats are well; the clock is the test's."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.north = books.a_cluster("north", gpus=10)
        self.watched()
        books.apply(*(pytorch_job(name, workers=1) for name in PLACED), pytorch_job("waiting", workers=1, gpus=2))
        assert books.cycle(now) == 5
        Work.objects.exclude(name="sending").update(state="Applied", applied_at=now)
        for name in ("running", "failing", "paused"):
            books.report(name, "Running", now=now)
        books.tolerating("failing", seconds=60)
        books.report("failing", "Failed", now=now)
        Job.objects.filter(name="starting").update(state="Dispatched")
        actions.suspend(books.job("paused"), by="test", now=now)
        Work.objects.filter(name="paused").update(state="Suspended")
        assert works.claim(Work.objects.get(name="sending").pk, now)

    def watched(self) -> None:
        """A process that was away for a while confirms what it sees, and its heartbeats go on."""
        freshness.confirm([self.north.pk], self.now)
        Cluster.objects.update(looked_at=self.now, last_heartbeat=self.now)

    def steps(self, by: timedelta) -> None:
        """The sweep may be the first to see the new time, or the last."""
        self.now += by
        for look in (lambda: None, self.watched):
            look()
            self.passes()

    def goes_on(self, seconds: float) -> None:
        for _ in range(int(seconds // 10)):
            self.now += timedelta(seconds=10)
            self.watched()
            self.passes()

    def passes(self) -> None:
        sweep.run(self.now)
        loop._idle_caches.clear()  # this test changes rows without a line in the journal
        loop.run(lambda: self.now)

    def states(self) -> dict[str, str]:
        return dict(Job.objects.values_list("name", "state"))


@pytest.mark.parametrize("step", [HOUR, -HOUR], ids=["ahead", "behind"])
def test_it_harms_no_job_that_the_clock_steps_by_an_hour_and_is_set_right(step):
    fleet = Fleet(timezone.now())
    before = fleet.states()
    for by in (step, -step):
        fleet.steps(by)
        assert fleet.states() == before and Job.objects.exclude(attempt__lte=1).count() == 0
        assert dict(Work.objects.values_list("name", "attempt")) == PLACED
    assert works.claim(Work.objects.get(name="sending").pk, fleet.now + timedelta(seconds=31)), "its claim has an end"
    fleet.goes_on(120)
    failing = books.job("failing")
    assert (Attempt.objects.get(job=failing, number=1).outcome, failing.state) == ("Failed", "Moving")
    for name in ("running", "starting"):
        assert books.job(name).state == before[name] and books.job(name).attempt == 1
    for name in ("failing", "paused"):
        books.gone(name)
    actions.resume(books.job("paused"), by="test", now=fleet.now)
    books.end("running")
    fleet.goes_on(20)
    assert {"paused", "waiting"} <= set(Job.objects.filter(state="Placed").values_list("name", flat=True))
    assert not Job.objects.filter(state="Failed").exists()
