"""A task that hangs ends its worker, because a thread cannot be ended; one within its limit does not."""

import threading
from time import monotonic

import pytest

from deploy.config import task_limits
from deploy.config.celery import app
from jobs import tasks


@app.task(name="test.hangs", time_limit=60)
def hangs(began, release):
    release.wait(30, began)


class Release(threading.Event):
    """Says when it is waited for, not before: until then the task stands elsewhere."""

    def wait(self, timeout, began):
        began.set()
        return super().wait(timeout)


@pytest.fixture
def running():
    """The task, run by a thread as in a worker, until the test ends."""
    began, release = threading.Event(), Release()
    thread = threading.Thread(target=hangs.apply, args=((began, release),))
    thread.start()
    assert began.wait(60)
    yield
    release.set()
    thread.join(60)


def test_it_ends_the_process_of_a_task_that_is_overdue_and_says_where_it_stands(running, caplog):
    ends = []
    task_limits.enforce(monotonic() + 30, ends.append)
    assert not ends
    task_limits.enforce(monotonic() + 61, ends.append)
    assert ends == [75]
    assert "test.hangs" in caplog.text and "release.wait(30, began)" in caplog.text


def test_it_forgets_a_task_that_has_ended():
    began, release = threading.Event(), Release()
    release.set()
    hangs.apply((began, release))
    ends = []
    task_limits.enforce(monotonic() + 3600, ends.append)
    assert not ends


def test_every_task_has_a_limit_and_the_scheduler_an_hour():
    """It runs cycle after cycle for as long as they are asked for."""
    assert app.conf.task_time_limit == 180 and tasks.schedule.time_limit == 3600


def test_checks_have_a_queue_of_their_own_from_which_every_worker_takes():
    assert {entry["options"].get("queue", "celery") for entry in app.conf.beat_schedule.values()} == {
        "celery",
        "checks",
    }
    assert set(app.amqp.queues) == {"celery", "checks"}
