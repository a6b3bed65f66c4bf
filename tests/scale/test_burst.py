"""Benchmark ``burst``: 1,000 gangs at once on the product as ``up`` starts it, until all have succeeded.

Result in ``.convoy/bench/burst.json``: seconds, jobs per second, peak resident memory of every process, and whether any member
was ever seen above its GPUs. SQLite, Valkey, three simulated members with 60 GPUs, 3 pods of 1 GPU and 2 s a gang.
"""

import json
import os
import platform
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from deploy.bootstrap.home import ROOT
from tests.support.product import Product

pytestmark = pytest.mark.bench
JOBS = 1000
MEMORY_MIB = 600
"""For web and worker together; 412 as measured on two cores in November 2026."""
LIMIT_S = 900.0
GANG = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: burst-{0}}}
spec:
  pytorchReplicaSpecs:
    Master: {{replicas: 1, template: &pod {{metadata: {{annotations: {{convoy.dev/duration: 2s}}}}, spec: {{containers: [
      {{name: pytorch, image: example.com/train, resources: {{limits: {{nvidia.com/gpu: 1, cpu: 100m}}}}}}]}}}}}}
    Worker: {{replicas: 2, template: *pod}}
"""


@pytest.fixture
def product(tmp_path: Path) -> Iterator[Product]:
    made = Product(tmp_path / "home")
    started = made.manage("up", "--detach")
    assert started.returncode == 0, started.stdout + started.stderr
    yield made
    made.manage("down")


def peak_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0


def above_capacity(api: httpx.Client) -> list[str]:
    shown = {c["name"]: c["capacity"].get("nvidia.com/gpu", {}) for c in api.get("clusters/").json()["results"]}
    return [name for name, gpus in shown.items() if gpus.get("requested", 0) > gpus.get("allocatable", 0)]


def test_a_thousand_gangs_at_once_all_succeed_within_memory_and_capacity(product: Product) -> None:
    door = json.loads((product.home.path / "cli.json").read_text())
    headers = {"Authorization": f"Bearer {door['token']}", "Content-Type": "application/yaml"}
    api = httpx.Client(base_url=door["url"].rstrip("/") + "/api/v1/", headers=headers, timeout=120)
    began, above = time.monotonic(), []
    for start in range(0, JOBS, 250):
        api.post("apply", content="---".join(GANG.format(i) for i in range(start, start + 250))).raise_for_status()
    succeeded = 0
    while succeeded < JOBS and time.monotonic() - began < LIMIT_S:
        found = {"state": "Succeeded", "search": "burst", "page_size": 1}
        succeeded = api.get("jobs/", params=found).json()["count"]
        above += above_capacity(api)
        print(f"\r{succeeded}/{JOBS} after {time.monotonic() - began:.0f} s", end="", file=sys.stderr)
        time.sleep(1)
    seconds = time.monotonic() - began
    memory = {name: round(peak_mib(child.pid)) for name, child in product.children().items() if child.pid}
    result = {
        "jobs": JOBS,
        "seconds": round(seconds, 1),
        "jobs_per_s": round(JOBS / seconds, 2),
        "peak_mib": memory,
        "above_capacity": above,
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
    }
    folder = ROOT / ".convoy" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "burst.json").write_text(json.dumps(result, indent=2))
    print(f"\n{json.dumps(result)}", file=sys.stderr)
    assert succeeded == JOBS and not above
    assert memory["web"] + memory["worker"] <= MEMORY_MIB
