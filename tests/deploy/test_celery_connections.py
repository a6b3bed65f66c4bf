"""A worker's threads keep their database connections from task to task, where they come from no pool."""

import pytest
from celery.fixups.django import DjangoWorkerFixup
from celery.signals import task_failure
from django.db import connection

from deploy.config.celery import app
from jobs import tasks

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor == "postgresql", reason="there it goes back to the pool of the process"),
]


def test_the_next_task_uses_the_connection_of_the_one_before():
    connection.ensure_connection()
    before, fixup = connection.connection, DjangoWorkerFixup(app)
    for _ in range(3):
        fixup.on_task_prerun(tasks.sweep)
        fixup.on_task_postrun(tasks.sweep)
    assert connection.connection is before


def test_a_task_that_fails_takes_its_connection_with_it():
    connection.ensure_connection()
    task_failure.send(tasks.sweep, task_id="1", exception=ValueError())
    assert connection.connection is None
