"""The task queue: its broker, its limits, its beat and its metrics. Tasks live in each app's ``tasks.py``."""

import os
from time import perf_counter
from typing import TYPE_CHECKING, Any

from celery import Task, bootsteps
from celery.signals import beat_init, setup_logging, task_failure, task_postrun, task_prerun, worker_ready
from django.db import connection
from kombu.transport import TRANSPORT_ALIASES

from deploy.config.celery_clock import ClockApp, ClockTask
from deploy.config.celery_heartbeat import WorkerHeartbeat
from deploy.config.task_limits import TaskLimits
from fleet import gc_tuning, metrics
from fleet.api.http import exposition

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deploy.config.settings")

TRANSPORT_ALIASES["files"] = "deploy.config.filebroker:Transport"

if TYPE_CHECKING:
    AnyTask = Task[..., Any]
else:
    AnyTask = Task


class DispatchLanes(bootsteps.StartStopStep):
    """Keeps half of the worker's threads out of the lanes to slow members."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def start(self, consumer: Any) -> None:
        from jobs.services.dispatch import pushing  # its models are known only once Django is set up

        pushing.LANES.limit(consumer.controller.concurrency // 2)


app = ClockApp("convoy", task_cls=ClockTask)
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["fleet", "jobs"])
app.steps["consumer"].add(WorkerHeartbeat)
app.steps["consumer"].add(TaskLimits)
app.steps["consumer"].add(DispatchLanes)


@setup_logging.connect
def _keep_logging(**_: object) -> None:
    """Django has configured it by ``CONVOY_LOG_LEVEL``. Without a receiver, Celery would set its own: WARNING."""


@beat_init.connect
def _say_so_at_once(**_: object) -> None:
    """Report beat and worker as alive at start, so that a readiness check need not wait for the first tick."""
    app.send_task("fleet.beat")


@beat_init.connect
@worker_ready.connect
def _look_no_more_at_code(**_: object) -> None:
    gc_tuning.shorten()  # an interpreter that ends looks at everything as well, time and again


@beat_init.connect
@worker_ready.connect
def _serve_metrics(**_: object) -> None:
    exposition.serve()


@task_prerun.connect
def _begin(task: AnyTask, **_: Any) -> None:
    task.request.update(began=perf_counter())


@task_postrun.connect
def _count_run(task: AnyTask, **_: Any) -> None:
    metrics.TASK_SECONDS.labels(task.name).observe(perf_counter() - task.request.get("began"))


@task_failure.connect
def _count_error(sender: AnyTask, **_: Any) -> None:
    metrics.RECONCILE_ERRORS.labels(sender.name).inc()
    connection.close()  # the next task of this thread begins with a sound one
