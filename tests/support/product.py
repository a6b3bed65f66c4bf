"""The product as a person starts it, in a home and on a port of its own."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deploy.bootstrap import running
from deploy.bootstrap.home import ROOT, Home
from tests.support.free_ports import free_port

DEADLINE_S = 120.0


class Product:
    """One home, and the commands a person would type."""

    def __init__(self, path: Path) -> None:
        self.home = Home(path)
        self.port, self.kube_port = free_port(), free_port()

    def manage(self, *argv: str, **more: str) -> subprocess.CompletedProcess[str]:
        env = {name: value for name, value in os.environ.items() if name != "REDIS_URL"} | more
        env |= {"CONVOY_HOME": str(self.home.path), "CONVOY_PORT": str(self.port)}
        env["CONVOY_KUBE_PORT"] = str(self.kube_port)
        command = [sys.executable, str(ROOT / "manage.py"), *argv]
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=600, check=False)

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
