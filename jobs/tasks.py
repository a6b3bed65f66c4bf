"""Demand's background work: each task is one call of a service."""

from uuid import UUID

from celery import shared_task

from fleet.db import clock
from jobs.services.dispatch import pushing
from jobs.services.follow import diagnosing, hangs, notices, runtime_facts, volume_nodes
from jobs.services.follow import sweep as sweeping
from jobs.services.follow.timeouts import health
from jobs.services.scheduling import loop
from jobs.services.series import recording

_sweeper = sweeping.Sweeper()
_recorder = recording.Recorder()


@shared_task(name="jobs.schedule", time_limit=3600)
def schedule() -> None:
    loop.run(clock.now)


# A try lasts as long as its member takes for each of its requests, every one of which has a time limit.
@shared_task(name="jobs.push", time_limit=1800)
def push(*work_ids: int) -> None:
    pushing.push(work_ids, clock.now)


@shared_task(name="jobs.check_health")
def check_health() -> None:
    now = clock.now()
    with sweeping.alone(now) as is_ours:
        if is_ours:
            health.check(now)


@shared_task(name="jobs.diagnose")
def diagnose(job_uid: str, attempt: int) -> None:
    diagnosing.run(UUID(job_uid), attempt, clock.now())


@shared_task(name="jobs.check_hang")
def check_hang(job_uid: str) -> None:
    hangs.check(UUID(job_uid), clock.now())


@shared_task(name="jobs.notify_hang")
def notify_hang(pk: int) -> None:
    hangs.notify(pk, clock.now())


@shared_task(name="jobs.read_volume")
def read_volume(location: int) -> None:
    volume_nodes.read(location, clock.now())


@shared_task(name="jobs.read_runtime")
def read_runtime(job_uid: str, attempt: int) -> None:
    runtime_facts.run(UUID(job_uid), attempt, clock.now())


@shared_task(name="jobs.reclaim")
def reclaim(job_uid: str) -> None:
    loop.advance_evictions(clock.now(), [UUID(job_uid)])


@shared_task(name="jobs.settle_notices")
def settle_notices(job_uid: str) -> None:
    notices.settle(clock.now(), [UUID(job_uid)])


@shared_task(name="jobs.sweep")
def sweep() -> None:
    _sweeper.run(clock.now(ask=True))


@shared_task(name="jobs.cluster_changed")
def cluster_changed(cluster_id: int) -> None:
    sweeping.cluster_changed(cluster_id, clock.now())


@shared_task(name="jobs.record_series")
def record_series() -> None:
    _recorder.run(clock.now())
