"""A command that somebody runs in a pod by exec, as an attacker on the control plane's machine: it may no more than the pod."""

import json
import os
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator.node.runtime import entering, launcher
from simulator.node.runtime.isolation import Isolation
from simulator.node.runtime.processes import Ports, Process, prepare
from simulator.streaming.source import NotEntered
from tests.simulator.node.isolated_pods import SECRET, fetch, home, pod
from tests.support.isolation import needs_isolation
from tests.support.members import eventually

__all__ = ["home"]
pytestmark = needs_isolation
LOOK = """
import json, os, resource
def content(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
status = dict(line.split(":\\t", 1) for line in content("/proc/self/status").decode().splitlines() if ":\\t" in line)
processes = [pid for pid in os.listdir("/proc") if pid.isdigit()]
print(json.dumps({
    "uid": os.getuid(), "groups": os.getgroups(), "env": dict(os.environ), "stuck": status["NoNewPrivs"],
    "descriptors": sorted(map(int, os.listdir("/proc/self/fd")))[:-1],
    "caps": [status[name] for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb")],
    "limits": [resource.getrlimit(each)[1] for each in (resource.RLIMIT_NPROC, resource.RLIMIT_CORE)],
    "processes": len(processes), "told": [pid for pid in processes if SECRET in content(f"/proc/{pid}/environ")],
    "keys": [path for path in PATHS if content(path)],
}))
"""


@pytest.fixture
def running(home: Path) -> Iterator[Process]:
    """A pod that sleeps."""
    member = home / "simulator" / "north"
    isolation = Isolation.of({**os.environ, "CONVOY_PROCESS_PATHS": str(home.parent)}, member)
    script = "import time; print('up', flush=True); time.sleep(600)"
    process = Process(prepare(pod(script, "u1"), member, fetch, Ports(), restart=0), isolation)
    eventually(lambda: "up" in process.launch.log.read_text(), 30)
    yield process
    process.kill()
    process.wait()


def run(process: Process, script: str) -> str:
    entered = entering.enter(process, ["python3", "-c", textwrap.dedent(script)], stdin=False, tty=False)
    assert entered.stderr is not None
    with os.fdopen(entered.stdout) as said, os.fdopen(entered.stderr) as errors:
        text = said.read() + errors.read()
    entered.process.wait()
    return text


def test_it_has_no_more_rights_than_the_pod(running: Process, home: Path) -> None:
    keys = [str(home / name) for name in ("encryption-key", "convoy.sqlite3", "admin-password")]
    seen = json.loads(run(running, f"PATHS, SECRET = {keys!r}, {SECRET.encode()!r}\n{LOOK}"))
    assert seen["uid"] == launcher.POD_UID and not seen["groups"]
    assert {int(each, 16) for each in seen["caps"]} == {0} and seen["stuck"] == "1"
    assert seen["descriptors"] == [0, 1, 2] and seen["keys"] == [] and seen["told"] == []
    assert SECRET not in str(seen["env"]) and seen["processes"] < 6
    assert seen["limits"] == [1024, 0]


def test_it_is_the_first_to_go_when_memory_runs_out(running: Process) -> None:
    assert run(running, "print(open('/proc/self/oom_score_adj').read())").strip() == "1000"


def test_it_ends_with_the_pod(running: Process) -> None:
    entered = entering.enter(running, ["sleep", "600"], stdin=False, tty=False)
    running.kill()
    running.wait()
    assert entered.process.wait(60) != 0
    for descriptor in (entered.stdout, entered.stderr):
        assert descriptor is not None
        os.close(descriptor)
    with pytest.raises(NotEntered):
        entering.enter(running, ["true"], stdin=False, tty=False)


@pytest.mark.parametrize("port", [0, -1, 65536, 10**30])
def test_a_port_that_is_none_is_refused(running: Process, port: int) -> None:
    with pytest.raises(NotEntered):
        entering.connect(running, port)
