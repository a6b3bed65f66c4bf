"""The product as a person starts it: ``manage.py up`` with real processes, each of them killed once, and stopped again.

One product serves all tests of this file; they run in order, in one worker. The demo's story is told in ``tests/flows``.
"""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.bootstrap import ports, running
from deploy.bootstrap.home import ROOT, Home
from deploy.supervisor import processes

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("up")]
DEADLINE_S = 60.0


class Product:
    """One home, and the commands a person would type."""

    def __init__(self, path: Path) -> None:
        self.home = Home(path)
        self.port = ports.any_free(0)

    def manage(self, *argv: str) -> subprocess.CompletedProcess[str]:
        env = {name: value for name, value in os.environ.items() if name != "REDIS_URL"}
        env |= {"CONVOY_HOME": str(self.home.path), "CONVOY_PORT": str(self.port)}
        command = [sys.executable, str(ROOT / "manage.py"), *argv]
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=180, check=False)

    def children(self) -> dict[str, running.ChildState]:
        return {row.name: row for row in running.children(running.state(self.home))}

    def all_ready(self) -> bool:
        rows = self.children().values()
        return bool(rows) and all(row.is_ready for row in rows)


def wait(condition: Callable[[], Any]) -> None:
    until = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    product = Product(tmp_path_factory.mktemp("up") / "home")
    started = product.manage("up", "--detach", "--empty")
    assert started.returncode == 0, started.stdout + started.stderr
    yield product
    product.manage("down")


def test_it_is_ready_when_up_returns(product: Product) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{product.port}/readyz?verbose") as answer:
        assert json.load(answer)["checks"]
    assert product.manage("status").returncode == 0


def test_a_second_up_finds_the_first(product: Product) -> None:
    again = product.manage("up", "--detach")
    assert again.returncode == 0
    assert "already up" in again.stdout
    assert f"http://127.0.0.1:{product.port}/" in again.stdout


def test_doctor_finds_nothing_wrong_with_the_processes(product: Product) -> None:
    assert "✗ web" not in product.manage("doctor").stdout


@pytest.mark.parametrize("name", ["web", "worker", "beat", "watcher", "broker"])
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
