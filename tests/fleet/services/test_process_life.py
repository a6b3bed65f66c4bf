"""Heartbeats of our own processes, tidying, and the watcher as a process."""

import os
import signal
import subprocess
import sys
import time
from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from fleet import tasks
from fleet.models import Event, Heartbeat
from fleet.services.operations import processes
from tests.support import databases

pytestmark = pytest.mark.django_db
LIMIT_S = 180
"""For a machine so busy that to import Django takes a minute; one that ends is seen at once."""


def test_it_says_that_beat_and_worker_are_alive():
    tasks.beat()
    tasks.beat()
    assert sorted(Heartbeat.objects.values_list("role", flat=True)) == ["beat", "worker"]


def test_it_forgets_old_events_and_processes():
    now = timezone.now()
    processes.beat("worker", now - timedelta(hours=1), instance="old")
    processes.beat("worker", now)
    for age in (timedelta(days=30), timedelta()):
        Event.objects.create(regarding_kind="Cluster", regarding_uid="x", first_at=now - age, last_at=now - age)
    tasks.housekeeping()
    assert (Event.objects.count(), Heartbeat.objects.count()) == (1, 1)


@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
def test_it_ends_in_good_order_when_told(tmp_path):
    own = {"CONVOY_HOME": str(tmp_path), "DATABASE_URL": databases.url()}
    environment = {**os.environ, **own, "DJANGO_SETTINGS_MODULE": "deploy.config.settings"}
    watcher = subprocess.Popen([sys.executable, "-m", "django", "watch_members"], env=environment, cwd=settings.ROOT)
    try:
        until = time.monotonic() + LIMIT_S
        while not Heartbeat.objects.exists():
            assert watcher.poll() is None and time.monotonic() < until
            time.sleep(0.1)
        watcher.send_signal(signal.SIGTERM)
        assert watcher.wait(LIMIT_S) == 0
    finally:
        watcher.kill()
