"""What one pod may use up: its processes, its files and its output are bounded, others of the machine go on, and it is told."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fleet.kube.resources import EVENTS, PODS
from fleet.member.client import MemberClient
from fleet.member.errors import MemberMissing
from simulator.node import kubelet
from simulator.node.runtime import appetite, entering, launcher
from simulator.node.runtime.appetite import MIB, Bounds
from simulator.node.runtime.isolation import Isolation
from simulator.node.runtime.processes import Ports, Process, prepare
from tests.simulator.casting import calling, member, until
from tests.simulator.node.isolated_pods import fetch, home, pod
from tests.support.isolation import needs_isolation
from tests.support.members import eventually

__all__ = ["home"]
MOST = launcher.LIMITS[launcher.resource.RLIMIT_NPROC]
BOMB = """
import os, time
count = 1
try:
    while True:
        if not os.fork():
            time.sleep(600)
            os._exit(0)
        count += 1
except OSError as e:
    print("stopped at", count, e.strerror, flush=True)
time.sleep(600)
"""
Start = Callable[..., Process]


@pytest.fixture
def start(home: Path) -> Iterator[Start]:
    member = home / "simulator" / "north"
    isolation = Isolation.of(os.environ, member)
    started: list[Process] = []

    def run(script: str, uid: str) -> Process:
        started.append(Process(prepare(pod(script, uid, job=uid), member, fetch, Ports(), restart=0), isolation))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.wait()


def said(process: Process) -> str:
    return process.launch.log.read_text()


@needs_isolation
def test_a_fork_bomb_is_bounded_and_takes_no_process_of_another_pod(start: Start) -> None:
    bomb = start(BOMB, "bomb")
    eventually(lambda: "stopped at" in said(bomb), 60)
    assert f"stopped at {MOST} Resource temporarily unavailable" in said(bomb)
    other = start("import subprocess; print(subprocess.run(['true']).returncode)", "other")
    assert other.wait() == 0 and said(other) == "0\n"


@needs_isolation
def test_what_is_run_by_exec_counts_as_the_pod_s_own(start: Start) -> None:
    sleeps = start("import time; print('up', flush=True); time.sleep(600)", "sleeps")
    eventually(lambda: "up" in said(sleeps), 60)
    words = BOMB.replace("\ntime.sleep(600)\n", "\n")
    counts = []
    for _ in range(2):
        entered = entering.enter(sleeps, ["python3", "-c", words], stdin=False, tty=False)
        assert entered.stderr is not None
        line = b""
        while not line.endswith(b"\n"):
            line += os.read(entered.stdout, 100) or pytest.fail("it said nothing")
        counts.append(int(line.split()[2]))
        os.close(entered.stdout)
        os.close(entered.stderr)
        entered.process.wait()
    assert counts[0] + counts[1] <= MOST + 1


@needs_isolation
def test_it_makes_no_user_namespace_of_its_own(start: Start) -> None:
    """In which it would have privileges over parts of the kernel that are seldom looked at."""
    tries = start("import ctypes; print(ctypes.CDLL(None).unshare(0x10000000))", "tries")
    tries.wait()
    assert said(tries) == "-1\n"


@needs_isolation
@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm"])
def test_scratch_space_has_a_bound_of_files(start: Start, folder: str) -> None:
    script = f"""
    try:
        for number in range(10**6):
            open(f"{folder}/{{number}}", "w").close()
    except OSError as e:
        print(e.strerror, number < 70_000)
    """
    fills = start(script, "fills")
    fills.wait()
    assert said(fills) == "No space left on device True\n"


FILES = "[open(str(number), 'w').close() for number in range(500)]"
BOMBS = {
    "files": (FILES, "The pod has more than 300 files"),
    "files in a claim": (f"import os; os.chdir('/d'); {FILES}", "The pod has more than 300 files"),
    "space": (
        "[open(str(number), 'wb').write(b'x' * 2**20) for number in range(30)]",
        "Pod ephemeral local storage usage exceeds the total limit of 20 MiB.",
    ),
    "output": ("print('x' * 2**20 * 6, flush=True)", "The output of the container is larger than 5 MiB."),
    "depth": (
        "import os\nfor _ in range(1500): os.mkdir('d'); os.chdir('d')",
        "The files of the pod are nested deeper than 128 folders.",
    ),
}
SMALL = Bounds(size=20 * MIB, files=300, output=5 * MIB, small_files=50)


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MemberClient]:
    """Of a member whose pods may use up little, and are looked at often."""
    monkeypatch.setattr(kubelet, "Bounds", lambda: SMALL)
    monkeypatch.setattr(appetite, "LOOK_S", 0.05)
    tmp_path.chmod(0o755)
    with member(tmp_path / "north", time_scale=1.0, start_delay_s=0.0) as made, calling(made) as client:
        yield client


def create(client: MemberClient, name: str, script: str) -> None:
    container = {"name": "c", "image": "i", "command": ["python3", "-c", script]}
    container["volumeMounts"] = [{"name": "d", "mountPath": "/d"}]
    volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": name}}]
    about = {"name": name, "namespace": "default", "annotations": {"convoy.dev/run": "process"}}
    spec = {"containers": [container], "volumes": volumes, "restartPolicy": "Always"}
    client.create(PODS.path("default"), {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec})


def status(client: MemberClient, name: str) -> dict[str, Any]:
    try:
        return dict(client.get(PODS.path("default", name)).get("status") or {})
    except MemberMissing:
        return {"phase": "Gone"}


@needs_isolation
def test_a_pod_that_fills_the_disk_is_evicted_and_told_why(client: MemberClient, tmp_path: Path) -> None:
    for name, (script, _) in BOMBS.items():
        create(client, name.replace(" ", "-"), f"import time\n{script}\ntime.sleep(600)")
    create(client, "modest", f"import time\n{FILES.replace('500', '50')}\ntime.sleep(600)")
    for name, (_, words) in BOMBS.items():
        until(lambda name=name: status(client, name.replace(" ", "-")).get("phase") == "Failed", 60)
        shown = status(client, name.replace(" ", "-"))
        assert shown["reason"] == "Evicted" and shown["message"].startswith(words)
        assert "terminated" in shown["containerStatuses"][0]["state"], "whatever its restart policy"
        client.delete(PODS.path("default", name.replace(" ", "-")), grace_s=0)
        until(lambda name=name: status(client, name.replace(" ", "-"))["phase"] == "Gone", 60)
    assert status(client, "modest")["phase"] == "Running"
    until(lambda: len(list((tmp_path / "north" / "pods").iterdir())) == 1, 60)


@needs_isolation
def test_a_pod_that_can_start_no_more_processes_is_told(client: MemberClient) -> None:
    create(client, "bomb", BOMB)
    until(lambda: [each["reason"] for each in client.list(EVENTS.path("default"))["items"]] == ["TooManyProcesses"], 60)


@needs_isolation
def test_while_the_machine_is_low_on_space_no_process_starts_and_large_ones_go(
    client: MemberClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(client, "large", f"import time\n{FILES.replace('500', '100')}\ntime.sleep(600)")
    create(client, "modest", "import time; time.sleep(600)")
    for name in ("large", "modest"):
        until(lambda name=name: status(client, name).get("phase") == "Running", 60)
    monkeypatch.setattr(appetite, "machine_fault", lambda *_: "this machine is low on disk space")
    monkeypatch.setattr("simulator.node.runtime.sandbox.machine_fault", lambda *_: "this machine is low on disk space")
    create(client, "late", "pass")
    until(lambda: status(client, "large").get("reason") == "Evicted", 60)
    until(lambda: "low on disk" in str(status(client, "late")), 60)
    assert status(client, "modest")["phase"] == "Running"


def test_a_disk_is_low_when_space_or_files_run_out(tmp_path: Path) -> None:
    assert not appetite.machine_fault(tmp_path, Bounds(free_size=0, free_files=0.0))
    assert "MiB are free" in appetite.machine_fault(tmp_path, Bounds(free_size=1 << 60))
    assert "of its files" in appetite.machine_fault(tmp_path, Bounds(free_size=0, free_files=1.1))
