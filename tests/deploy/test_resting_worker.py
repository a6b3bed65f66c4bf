"""The worker that tests share: what a test leaves to be done later is not done in the database of another."""

import time

import pytest
from celery.worker import state

from deploy.config.celery import app

pytestmark = pytest.mark.django_db

SOON_S = 15.0
"""Long enough that a busy machine has handed the task to the worker, and let it rest, before."""
_ran: list[str] = []


@app.task(name="test.notes")
def notes(what: str) -> None:
    _ran.append(what)


def _until(held) -> None:
    deadline = time.monotonic() + 120
    while not held():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_it_forgets_a_task_whose_time_comes_while_it_rests(resting_worker):
    resting_worker.learn(notes)
    with resting_worker.at_work():
        notes.apply_async(("late",), countdown=SOON_S)
        _until(lambda: state.scheduled_requests)
    _until(lambda: not state.scheduled_requests)
    with resting_worker.at_work():
        notes.delay("another")
        _until(lambda: "another" in _ran)
    assert "late" not in _ran
