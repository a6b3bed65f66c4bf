"""Benchmark ``pod-streams``: 100 streams into pods for a minute, half of them followed logs, and a get beside them.

Result in ``.convoy/bench/pod-streams.json``: threads of the door with and without the streams, milliseconds of a get at the
95th percentile, bytes passed, processor seconds, and seconds until the last stream had ended after its token was revoked.
The door is a process. Each stream is sent 500 bytes ten times a second. The member and the readers are in the benchmark.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.bootstrap.home import ROOT
from fleet.kube.resources import PODS
from fleet.member.client import Access, MemberClient
from simulator.apiserver.server import ApiServer
from tests.support import template
from tests.support.kubectl import client_of, process
from tests.support.pod_streams import Stream, Ticking, attach, follow

pytestmark = pytest.mark.bench
STREAMS, SECONDS = 100, float(os.environ.get("CONVOY_BENCH_STREAMS_S", "60"))
GET_MS, END_S = 25, 5
FILL = """
import django; django.setup()
from pathlib import Path
from django.contrib.auth import get_user_model
from django.utils import timezone
from fleet.services.clusters import clusters
from tests.fleet.kubeapi.builders import Member, a_pod
get_user_model().objects.create_superuser("admin", password=None)
row = clusters.join("north", Path({kubeconfig!r}).read_text(), by="bench", now=timezone.now())
Member("north", row).pods(a_pod("a"))
"""
REVOKE = """
import django; django.setup()
import time
from django.utils import timezone
from fleet.models import Token
Token.objects.update(revoked_at=timezone.now())
print(time.time())
"""


@pytest.fixture
def member(tmp_path: Path) -> Iterator[tuple[Path, Ticking]]:
    pod = Ticking(b"x" * 499 + b"\n")
    server = ApiServer("north", tmp_path / "member", log_source=pod)
    server.start()
    client = MemberClient(server.access())
    spec = {"nodeName": "n1", "containers": [{"name": "main", "image": "x"}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}
    client.create(PODS.path("default"), body)
    client.merge_patch(PODS.path("default", "a", "status"), {"status": {"phase": "Running"}})
    file = tmp_path / "member.yaml"
    file.write_text(yaml.safe_dump(server.kubeconfig()))
    yield file, pod
    client.close()
    server.stop()


def about(pid: int) -> tuple[int, float]:
    """Threads, and processor seconds used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[17]), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def gets(kubeconfig: str, seconds: float) -> list[float]:
    """Milliseconds of each get, about 20 a second, sorted."""
    client, path = client_of(Path(kubeconfig)), PODS.path("default", "a.north")
    took_ms: list[float] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        began = time.perf_counter()
        client.get(path)
        took_ms.append((time.perf_counter() - began) * 1000)
        time.sleep(0.05)
    return sorted(took_ms)


def measured(kubeconfig: Path, seconds: float) -> list[float]:
    """The same by a process of its own, whose interpreter does not read streams."""
    script = (
        "import json, sys; from tests.scale.test_pod_streams import gets; print(json.dumps(gets(sys.argv[1], SECONDS)))"
    )
    command = [sys.executable, "-c", script.replace("SECONDS", str(seconds)), str(kubeconfig)]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    return list(json.loads(done.stdout))


def p95(sorted_ms: list[float]) -> float:
    return round(sorted_ms[len(sorted_ms) * 95 // 100], 1)


async def minute(access: Access, file: Path, pod: Ticking, pid: int, revoke: Callable[[], float]) -> dict[str, Any]:
    streams: list[Stream] = [await (follow if at % 2 else attach)(access, "a") for at in range(STREAMS)]
    reading = [asyncio.create_task(read(stream)) for stream in streams]
    ticking = asyncio.create_task(ticks(pod))
    _, used_s = about(pid)
    beside = await asyncio.to_thread(measured, file, SECONDS)
    open_yet = sum(not task.done() for task in reading)
    threads, used_until_s = about(pid)
    revoked = await asyncio.to_thread(revoke)
    ends = await asyncio.wait_for(asyncio.gather(*reading), 30)
    ticking.cancel()
    return {
        "open": open_yet,
        "threads": threads,
        "get_p95_ms": p95(beside),
        "processor_s": round(used_until_s - used_s, 1),
        "mbyte": round(sum(count for count, _ in ends) / 1e6, 1),
        "ended_s": round(max(at for _, at in ends) - revoked, 1),
    }


async def read(stream: Stream) -> tuple[int, float]:
    """The bytes that came, and when it ended."""
    return await stream.until_closed(), time.time()


async def ticks(pod: Ticking) -> None:
    while True:
        pod.tick()
        await asyncio.sleep(0.1)


def test_a_hundred_streams_take_no_threads_and_no_other_request_waits_for_them(
    member: tuple[Path, Ticking], tmp_path: Path, report: Callable[[str, dict[str, Any]], None]
) -> None:
    kubeconfig, pod = member
    with process(tmp_path, prepare=FILL.format(kubeconfig=str(kubeconfig))) as (server, file):
        access = client_of(file).access
        alone = measured(file, 5)
        threads, _ = about(server.pid)

        def revoke() -> float:
            env = template.environment(tmp_path)
            return float(
                subprocess.run([sys.executable, "-c", REVOKE], cwd=ROOT, env=env, check=True, stdout=-1).stdout
            )

        found = asyncio.run(minute(access, file, pod, server.pid, revoke))
    found |= {"streams": STREAMS, "threads_alone": threads, "get_p95_alone_ms": p95(alone)}
    report("pod-streams", found)
    assert found["open"] == STREAMS
    assert found["threads"] <= threads + 16, "the pool that answers requests may have grown to its size"
    assert found["ended_s"] < END_S
    assert found["get_p95_ms"] <= GET_MS
