"""Benchmark ``kubectl-list``: 100,000 jobs stored; ``kubectl get pytorchjobs -A`` in its pages, and one job asked for.

Result in ``.convoy/bench/kubectl-list.json``: seconds, peak MiB of the server above idle, and milliseconds of a get. The rows
are written as they stand after a submit; nothing schedules them. ``CONVOY_BENCH_JOBS`` changes their number.
"""

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from deploy.bootstrap.home import ROOT
from tests.support.kubectl import BINARY, client_of, process

pytestmark = pytest.mark.bench
JOBS = int(os.environ.get("CONVOY_BENCH_JOBS", "100000"))
SECONDS_PER_JOB, MEMORY_MIB, GET_MS = 20.0 / 100_000, 150, 25
"""The limits; the first for any number of jobs."""
FILL = """
import django; django.setup()
from django.contrib.auth import get_user_model
from django.db import transaction
from tests.scale.test_kubectl_list import rows
from jobs.models import Job
get_user_model().objects.create_superuser("admin", password=None)
with transaction.atomic():
    Job.objects.bulk_create(rows(), batch_size=1000)
"""


def rows() -> Iterator[object]:
    """As `jobs.services.submission.submit` writes them, with what kubectl notes on what it applies."""
    from jobs.models import Job

    began = datetime.now(UTC) - timedelta(days=3)
    container = {"name": "pytorch", "image": "example.com/train:1", "resources": {"limits": {"nvidia.com/gpu": 8}}}
    role = {"replicas": 4, "restartPolicy": "OnFailure", "template": {"spec": {"containers": [container]}}}
    spec = {"pytorchReplicaSpecs": {"Master": {**role, "replicas": 1}, "Worker": role}}
    for i in range(JOBS):
        name, namespace = f"job-{i:06}", f"team-{i % 20}"
        labels = {"team": namespace, "app": "train"}
        noted = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"spec": spec})}
        metadata = {"name": name, "namespace": namespace, "labels": labels, "annotations": noted}
        yield Job(
            api_version="kubeflow.org/v1", kind="PyTorchJob", namespace=namespace, name=name, labels=labels,
            manifest={"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": metadata, "spec": spec},
            roles=[{"name": "Master", "replicas": 1, "request": {"nvidia.com/gpu": 8}}], total={"nvidia.com/gpu": 40},
            created_at=began + timedelta(seconds=i), queued_at=began, resource_version=i + 1, gpus=40,
            reason={"code": "QuotaFull", "message": "team-1 has used its 64 GPUs", "clusters": []},
        )  # fmt: skip


@pytest.fixture
def kube(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], list[str]]]:
    """The server of this door alone, and how kubectl is called."""
    with process(tmp_path, prepare=FILL) as (server, kubeconfig):
        yield server, [str(BINARY), "--kubeconfig", str(kubeconfig), "--cache-dir", str(tmp_path / "cache")]


def mib(pid: int, what: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(what))


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def milliseconds(kubectl: list[str]) -> list[float]:
    """Of gets of one job, on the door's own connection: kubectl's start is not the server's time."""
    api, found = client_of(Path(kubectl[2])), []
    for i in range(300):
        job = i * 7919 % JOBS
        began = time.perf_counter()
        api.get(f"/apis/kubeflow.org/v1/namespaces/team-{job % 20}/pytorchjobs/job-{job:06}")
        found.append((time.perf_counter() - began) * 1000)
    return sorted(found)


def test_a_hundred_thousand_jobs_are_listed_in_pages_within_time_and_memory(kube) -> None:
    server, kubectl = kube
    subprocess.run(
        [*kubectl, "get", "pytorchjobs", "-n", "team-1", "--chunk-size=500"], capture_output=True, check=True
    )
    idle, spent, began = mib(server.pid, "VmRSS"), cpu_s(server.pid), time.monotonic()
    listed = subprocess.run([*kubectl, "get", "pytorchjobs", "-A"], capture_output=True, check=True)
    seconds, spent = time.monotonic() - began, cpu_s(server.pid) - spent
    took = milliseconds(kubectl)
    result = {
        "jobs": JOBS,
        "list_s": round(seconds, 1),
        "list_server_cpu_s": round(spent, 1),
        "above_idle_mib": round(mib(server.pid, "VmHWM") - idle, 1),
        "get_ms": {"p50": round(took[len(took) // 2], 1), "p95": round(took[len(took) * 95 // 100], 1)},
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}",
    }
    folder = ROOT / ".convoy" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kubectl-list.json").write_text(json.dumps(result, indent=2))
    print(f"\n{json.dumps(result)}", file=sys.stderr)
    assert listed.stdout.count(b"\n") == JOBS + 1
    assert seconds <= max(JOBS * SECONDS_PER_JOB, 3)
    assert result["above_idle_mib"] <= MEMORY_MIB
    assert result["get_ms"]["p95"] <= GET_MS
