"""The task queue: its broker, its limits and its beat. Tasks live in each app's ``tasks.py``."""

import os

from celery import Celery
from celery.signals import beat_init, worker_ready
from kombu.transport import TRANSPORT_ALIASES

from fleet import pauses

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deploy.config.settings")

TRANSPORT_ALIASES["files"] = "deploy.config.filebroker:Transport"

app = Celery("convoy")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["fleet", "jobs"])


@beat_init.connect
def _say_so_at_once(**_: object) -> None:
    """Whoever waits for beat and worker to be alive need not wait for the first tick."""
    app.send_task("fleet.beat")


@worker_ready.connect
def _look_no_more_at_code(**_: object) -> None:
    pauses.shorten()
