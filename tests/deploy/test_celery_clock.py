"""Periodic tasks go on when the clock of beat, or of a worker, is an hour wrong."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import OperationalError

from deploy.config import beat_schedule, celery_clock
from deploy.config.beat_schedule import Every
from deploy.config.celery import app
from fleet import tasks
from fleet.db import clock

NOW = datetime.now(UTC)
HOUR = timedelta(hours=1)


@pytest.mark.parametrize("ahead", [HOUR, timedelta(seconds=5)])
def test_beat_sends_at_once_what_it_last_sent_with_a_clock_that_was_ahead(ahead):
    assert Every(2.0).is_due(beat_schedule.steady() + ahead).is_due


def test_beat_waits_for_the_interval():
    state = Every(60.0).is_due(beat_schedule.steady() - timedelta(seconds=20))
    assert not state.is_due and 39 < state.next <= 40
    assert Every(60.0).is_due(beat_schedule.steady() - timedelta(seconds=61)).is_due


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_the_clock_of_beat_does_not_step(step, monkeypatch):
    before = beat_schedule.steady()
    monkeypatch.setattr(beat_schedule, "datetime", stepped(step))
    assert timedelta() <= beat_schedule.steady() - before < timedelta(minutes=1)


def test_every_periodic_task_has_such_an_interval():
    assert {type(entry["schedule"]) for entry in app.conf.beat_schedule.values()} == {Every}


def stepped(step):
    class Stepped(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + step

    return Stepped


def taken(expires: datetime):
    """Whether a worker runs a task that expires then."""
    task = app.tasks[tasks.beat.name]
    body = ((), {}, {})
    headers = {"id": "1", "task": task.name, "lang": "py", "expires": expires.isoformat()}

    class Message:
        headers: dict = {}
        properties: dict = {}
        delivery_info: dict = {}
        content_type, content_encoding, payload = "application/json", "utf-8", body

    Message.headers = headers
    request = celery_clock.ClockRequest(Message(), app=app, body=body, headers=headers, decoded=True, task=task)
    return not request.maybe_expire()


def test_tasks_have_such_requests():
    assert app.tasks[tasks.beat.name].Request == "deploy.config.celery_clock:ClockRequest"


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_a_worker_judges_by_the_shared_clock_when_a_task_expires(step, monkeypatch):
    monkeypatch.setattr(clock, "now", lambda: NOW + step)
    assert taken(NOW + step + timedelta(seconds=4))
    assert not taken(NOW + step - timedelta(seconds=4))


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_a_sender_counts_from_the_shared_clock(step, monkeypatch):
    monkeypatch.setattr(clock, "now", lambda: NOW + step)
    assert app.now() == NOW + step


def test_nothing_expires_and_all_is_sent_while_the_database_does_not_answer(monkeypatch):
    def away():
        raise OperationalError

    monkeypatch.setattr(clock, "now", away)
    assert taken(NOW - HOUR)
    assert abs(app.now() - datetime.now(UTC)) < timedelta(minutes=1)
