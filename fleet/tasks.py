"""The fleet's periodic work; each task is one call."""

import random
from datetime import timedelta

from celery import shared_task

from fleet.db import clock
from fleet.services.auditing import audit_chain, audit_sinks
from fleet.services.clusters import agents, health, member_tokens, rediscovery
from fleet.services.gpus import scraping
from fleet.services.logs import reading
from fleet.services.operations import processes
from fleet.services.operations.exclusive import exclusive
from fleet.services.watching import node_taints

_CHECK_TERM = timedelta(seconds=10)
"""Longer than a check takes, and shorter than the pause after which what was seen before counts for nothing."""
_AUDIT_TERM = timedelta(minutes=5)
"""Longer than every sink takes for all that it is handed in one run."""
_HOUSEKEEPING_TERM = timedelta(minutes=5)


@shared_task(name="fleet.beat")
def beat() -> None:
    """That it was sent shows that beat lives, and that it runs, that a worker does."""
    processes.beat_from_worker(clock.now())


@shared_task(name="fleet.check_clusters")
def check_clusters() -> None:
    now = clock.now()
    with exclusive("fleet.check_clusters", now, _CHECK_TERM) as is_ours:
        if is_ours:
            health.check_all(now)
            agents.start(clock.now())
    rediscovery.start(now, random.Random())  # noqa: S311 - spreads requests over time, keeps no secret
    node_taints.request_due(now)


@shared_task(name="fleet.taint_nodes")
def taint_nodes(cluster: int) -> None:
    node_taints.visit(cluster, clock.now())


@shared_task(name="fleet.read_gpus")
def read_gpus() -> None:
    scraping.start(clock.now())


@shared_task(name="fleet.audit")
def audit() -> None:
    now = clock.now()
    with exclusive("fleet.audit", now, _AUDIT_TERM) as is_ours:
        if is_ours:
            audit_chain.link_new(now)
            audit_sinks.hand_on(now)


@shared_task(name="fleet.housekeeping")
def housekeeping() -> None:
    now = clock.now()
    with exclusive("fleet.housekeeping", now, _HOUSEKEEPING_TERM) as is_ours:
        if is_ours:
            processes.tidy(now)
            member_tokens.start(now)
    reading.start(clock.now)


@shared_task(name="fleet.archive_logs")
def archive_logs() -> None:
    reading.start(clock.now)
