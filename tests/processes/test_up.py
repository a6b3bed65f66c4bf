"""The product as a person starts it: ``manage.py up`` with real processes, each of them killed once, and stopped again.

One product serves all tests of this file; they run in order, in one worker. The demo's story is told in ``tests/flows``.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from deploy.bootstrap import running
from deploy.bootstrap.home import ROOT
from deploy.supervisor import processes
from simulator.controller_manager import Shape
from tests.support.kubectl import BINARY
from tests.support.product import Product, wait
from tests.support.world import StillMember

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("up")]


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    product = Product(tmp_path_factory.mktemp("up") / "home")
    try:
        started = product.manage("up", "--detach", "--empty")
        assert started.returncode == 0, started.stdout + started.stderr
        yield product
    finally:
        product.manage("down")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_an_interrupted_up_leaves_no_orphan(tmp_path: Path, number: signal.Signals) -> None:
    home = tmp_path / "home"
    argv = [sys.executable, str(ROOT / "manage.py"), "up", "--empty"]
    with subprocess.Popen(argv, cwd=ROOT, env={**os.environ, "CONVOY_HOME": str(home)}) as up:
        wait(lambda: any("deploy.supervisor" in line for line in about(home)))
        up.send_signal(number)
        up.wait()
    wait(lambda: not about(home))


def about(home: Path) -> list[str]:
    """The command lines of all processes that name the home."""
    lines = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            lines.append(file.read_text(errors="replace"))
    return [line for line in lines if str(home) in line]


def test_it_is_ready_when_up_returns(product: Product) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{product.port}/readyz?verbose") as answer:
        assert json.load(answer)["checks"]
    assert product.manage("status").returncode == 0


def test_a_second_up_finds_the_first(product: Product) -> None:
    again = product.manage("up", "--detach")
    assert again.returncode == 0
    assert "already up" in again.stdout
    assert f"http://127.0.0.1:{product.port}/" in again.stdout


def test_a_stock_kubectl_speaks_to_it(product: Product) -> None:
    kubectl = (str(BINARY), "--kubeconfig", str(product.home.path / "kubeconfig"))
    asked = subprocess.run([*kubectl, "auth", "whoami"], capture_output=True, text=True, check=False, timeout=180)
    assert "admin" in asked.stdout, asked.stderr


def test_doctor_finds_nothing_wrong_with_the_processes(product: Product) -> None:
    assert "✗ web" not in product.manage("doctor").stdout


def test_each_loop_gives_its_own_sign_of_life(product: Product) -> None:
    """Worker and watcher are not judged through web and beat: those may stand still."""
    stopped = [product.children()[name].pid or 0 for name in ("web", "beat")]
    try:
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        for name in ("worker", "watcher"):
            file = product.home.run / f"{name}.heartbeat"
            before = file.stat().st_mtime_ns
            wait(lambda file=file, before=before: file.stat().st_mtime_ns > before)
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    wait(product.all_ready)


@pytest.mark.parametrize("name", ["web", "kube", "worker", "beat", "watcher", "broker"])
def test_it_survives_a_killed_process(product: Product, name: str) -> None:
    if name not in product.children():
        pytest.skip("this machine has no broker process")
    killed = product.children()[name].pid
    assert killed
    os.kill(killed, signal.SIGKILL)
    wait(lambda: product.children()[name].pid not in (None, killed) and product.all_ready())


def test_a_killed_supervisor_leaves_nothing_and_up_resumes(product: Product) -> None:
    before = running.state(product.home)
    os.kill(before["pid"], signal.SIGKILL)
    wait(lambda: not any(processes.is_alive(row.pid or 0, row.born) for row in running.children(before)))
    assert product.manage("up", "--detach").returncode == 0
    assert product.all_ready()


def test_it_joins_clusters_and_submits_nothing_to_them(product: Product, tmp_path: Path) -> None:
    member = StillMember("mine", tmp_path / "mine", Shape((), {}))
    member.start()
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(member.kubeconfig()))
    try:
        joined = product.manage("up", "--detach", "--members", str(tmp_path))
    finally:
        member.stop()
    assert joined.returncode == 0, joined.stdout + joined.stderr
    assert "Joining cluster mine" in joined.stdout and "is Running" not in joined.stdout
    kubectl = (str(BINARY), "--kubeconfig", str(product.home.path / "kubeconfig"))
    argv = [*kubectl, "get", "clusters,pytorchjobs,elasticquotatrees,propagationpolicies", "-A", "-o", "name"]
    there = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=180)
    assert there.stdout.split() == ["cluster.cluster.karmada.io/mine"], there.stdout + there.stderr


def test_down_leaves_no_process(product: Product) -> None:
    rows = product.children().values()
    assert product.manage("down").returncode == 0
    assert not [row.name for row in rows if processes.is_alive(row.pid or 0, row.born)]
    assert product.manage("status").returncode == 3


def test_reset_asks_before_it_forgets(product: Product) -> None:
    assert product.manage("reset").returncode == 1
    assert product.home.path.exists()
    assert product.manage("reset", "--yes").returncode == 0
    assert not product.home.path.exists()
