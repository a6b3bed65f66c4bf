"""The fleet's periodic work; each task is one call."""

from celery import shared_task
from django.utils import timezone

from fleet.services import health, processes


@shared_task(name="fleet.beat")
def beat() -> None:
    """That it was sent shows that beat lives, and that it runs, that a worker does."""
    processes.beat_from_worker(timezone.now())


@shared_task(name="fleet.check_clusters")
def check_clusters() -> None:
    health.check_all(timezone.now())


@shared_task(name="fleet.housekeeping")
def housekeeping() -> None:
    processes.tidy(timezone.now())
