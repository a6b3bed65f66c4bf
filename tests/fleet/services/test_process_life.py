"""Heartbeats of our own processes, tidying, and the watcher as a process."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from fleet import tasks
from fleet.models import Event, Heartbeat
from fleet.services import processes

pytestmark = pytest.mark.django_db


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
def test_it_ends_in_good_order_when_told(tmp_path):
    environment = {**os.environ, "CONVOY_HOME": str(tmp_path), "DJANGO_SETTINGS_MODULE": "deploy.config.settings"}
    django = [sys.executable, "-m", "django"]
    subprocess.run([*django, "migrate", "-v0"], check=True, env=environment, cwd=settings.ROOT)
    watcher = subprocess.Popen([*django, "watch_members"], env=environment, cwd=settings.ROOT)
    try:
        time_left = time.monotonic() + 20
        while not beats(tmp_path) and time.monotonic() < time_left:
            time.sleep(0.1)
        watcher.send_signal(signal.SIGTERM)
        assert watcher.wait(10) == 0
    finally:
        watcher.kill()


def beats(home):
    with sqlite3.connect(home / "convoy.sqlite3") as database:
        return database.execute("SELECT count(*) FROM fleet_heartbeat").fetchone()[0]
