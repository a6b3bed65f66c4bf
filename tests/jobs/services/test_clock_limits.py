"""Limits of time count the time that passed: a clock that steps by an hour ends, expires and deletes no job."""

from datetime import datetime, timedelta

import pytest
import yaml
from django.db import OperationalError
from django.utils import timezone

from fleet.models import ClockStep
from fleet.services.operations.clock_steps import StepDetector
from jobs.core.failover.lifecycle import MAX_WAIT
from jobs.models import Attempt, Job
from jobs.services.follow.sweep import Sweeper
from tests.support import books
from tests.support.quotas import apply_tree, gpus, leaf
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
LIMIT_MINUTES = 40
STAY = {"runs": "Running", "waits": "Queued", "queued": "Queued", "ended": "Succeeded", "due": "Queued"}


class Fleet:
    """A queue whose jobs may wait and run for 40 minutes; two processes sweep in turn. Clocks are the test's."""

    def __init__(self) -> None:
        self.now, self.monotonic = timezone.now(), 0.0
        self.north = books.a_cluster("north", gpus=2)
        attributes = {"max-runtime": "40m", "queue-timeout": "40m"}
        apply_tree(leaf("a", "default", **gpus(4, 4), attributes=attributes), leaf("b", "other", **gpus(0, 4)))
        books.apply(pytorch_job("runs", workers=0, gpus=2))
        assert books.cycle(self.now) == 1
        books.sent()
        books.report("runs", "Running", now=self.now)
        books.apply(pytorch_job("ended", workers=0))
        Job.objects.filter(name="ended").update(
            state="Succeeded", ttl_s=60 * LIMIT_MINUTES, finished_at=self.now, charge=None
        )
        books.apply(*map(self._waiting, ("waits", "queued", "due")))
        Job.objects.filter(name="due").update(deadline_at=self.now + 50 * MINUTE)
        self.sweepers = [Sweeper(lambda: self.monotonic) for _ in range(2)]

    def _waiting(self, name: str) -> str:
        body = yaml.safe_load(pytorch_job(name, workers=0, gpus=2))
        if name == "waits":
            body["metadata"]["annotations"] = {MAX_WAIT: str(60 * LIMIT_MINUTES)}
        return yaml.safe_dump(body)

    def goes_on(self, minutes: float) -> None:
        while minutes > 0:
            passed = min(minutes, 15)
            minutes -= passed
            self.now += passed * MINUTE
            self.monotonic += 60 * passed
            self.sweep()

    def steps(self, by: timedelta) -> None:
        self.now += by
        self.goes_on(0.5)

    def sweep(self) -> None:
        self.sweepers.reverse()
        assert self.sweepers[0].run(self.now)

    def states(self) -> dict[str, str]:
        return dict(Job.objects.filter(deleting_at=None).values_list("name", "state"))


@pytest.fixture
def fleet():
    fleet = Fleet()
    for _ in fleet.sweepers:
        fleet.goes_on(0.5)
    assert fleet.states() == STAY
    return fleet


@pytest.mark.parametrize("by", [HOUR, -HOUR, 24 * 400 * HOUR], ids=["ahead", "behind", "another year"])
def test_a_clock_that_steps_and_is_set_right_ends_no_job_and_none_lasts_longer(fleet, by):
    for step in (by, -by):
        fleet.steps(step)
        fleet.goes_on(2)
        assert fleet.states() == STAY
    assert [row.by for row in ClockStep.objects.order_by("pk")] == [by, -by]
    fleet.goes_on(LIMIT_MINUTES - 8)
    assert fleet.states() == STAY
    fleet.goes_on(4)
    assert fleet.states() == {"runs": "Failed", "waits": "Failed", "queued": "Failed", "due": "Failed"}


def test_a_step_that_stays_is_not_counted_either_and_a_deadline_has_come_ten_minutes_later(fleet):
    fleet.steps(HOUR)
    fleet.goes_on(8)
    assert fleet.states() == STAY
    fleet.goes_on(2)
    assert fleet.states() == STAY | {"due": "Failed"}
    assert books.job("due").reason["code"] == "DeadlineExceeded"
    fleet.goes_on(LIMIT_MINUTES - 11)
    assert fleet.states() == {"runs": "Failed", "waits": "Failed", "queued": "Failed", "due": "Failed"}


def test_a_time_in_which_no_process_ran_has_passed(fleet):
    fleet.sweepers = [Sweeper(lambda: fleet.monotonic)]
    fleet.now += HOUR
    fleet.sweep()
    assert fleet.states()["runs"] == "Failed" and not ClockStep.objects.exists()


def test_a_process_that_slept_while_another_swept_sees_no_step(fleet):
    asleep = fleet.sweepers.pop()
    fleet.goes_on(20)
    fleet.monotonic -= 1200
    fleet.sweepers.append(asleep)
    for _ in range(3):
        fleet.goes_on(0.5)
    assert not ClockStep.objects.exists()


def test_a_clock_that_was_set_back_is_seen_by_a_process_that_was_just_started(fleet):
    fleet.sweepers = [Sweeper(lambda: fleet.monotonic)]
    started = Attempt.objects.get(job__name="runs").started_at
    fleet.steps(-HOUR)
    assert ClockStep.objects.get().by <= -HOUR + MINUTE
    fleet.goes_on(LIMIT_MINUTES + 2)
    assert isinstance(started, datetime) and fleet.states() == STAY, "the hour back may have been one too many before"
    fleet.goes_on(60)
    assert fleet.states()["runs"] == "Failed"


def test_a_clock_that_was_ahead_when_the_processes_started_and_is_set_right_ends_no_job_early(fleet):
    fleet.now += 30 * MINUTE
    fleet.sweepers = [Sweeper(lambda: fleet.monotonic) for _ in range(2)]
    fleet.goes_on(2)
    fleet.steps(-30 * MINUTE)
    assert ClockStep.objects.get().by < timedelta()
    fleet.goes_on(LIMIT_MINUTES - 5)
    assert fleet.states() == STAY
    fleet.goes_on(3)
    assert fleet.states()["runs"] == "Failed"


def test_a_pass_that_cannot_look_for_a_step_ends_and_deletes_nothing(fleet, monkeypatch):
    look, failures = StepDetector.look, [OperationalError("database is locked")]

    def fails_once(detector, *args):
        if failures:
            raise failures.pop()
        return look(detector, *args)

    monkeypatch.setattr(StepDetector, "look", fails_once)
    fleet.steps(HOUR)
    assert not failures and fleet.states() == STAY
    fleet.goes_on(LIMIT_MINUTES - 4)
    assert ClockStep.objects.get().by >= HOUR - MINUTE and fleet.states()["runs"] == "Running"
    fleet.goes_on(4)
    assert fleet.states()["runs"] == "Failed"
