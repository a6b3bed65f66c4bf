"""The product as ``up`` starts it, on PostgreSQL, over simulated members in a process beside it that can be disturbed."""

import json
import secrets
import subprocess
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from deploy.bootstrap.home import ROOT
from tests.support.product import Product


@contextmanager
def simulated(home: Path, fleet: str) -> Iterator[None]:
    home.mkdir()
    (home / "fleet.yaml").write_text(fleet)
    command = [sys.executable, "-m", "simulator.main", "--home", str(home), "--config", str(home / "fleet.yaml")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline()
        yield
        process.terminate()


@contextmanager
def product_over(members: Path, home: Path, postgres: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx.Client]:
    """Its REST API, as its first admin."""
    product = Product(home)
    keys = {
        "CONVOY_SECRET_KEY": secrets.token_hex(32),
        "CONVOY_ENCRYPTION_KEYS": urlsafe_b64encode(secrets.token_bytes(32)).decode(),
    }
    for name, value in {**keys, "DATABASE_URL": postgres}.items():
        monkeypatch.setenv(name, value)
    started = product.manage("up", "--detach", "--members", str(members))
    assert started.returncode == 0, started.stdout + started.stderr
    door = json.loads((product.home.path / "cli.json").read_text())
    headers = {"Authorization": f"Bearer {door['token']}", "Content-Type": "application/yaml"}
    with httpx.Client(base_url=door["url"].rstrip("/") + "/api/v1/", headers=headers, timeout=120) as client:
        yield client
    product.manage("down")


def disturb(members: Path, *fault: str) -> None:
    command = [sys.executable, "-m", "simulator.fault", "--home", str(members), *fault]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)


def wait(holds: Callable[[], object], limit_s: float, every_s: float = 0.25) -> float:
    """Seconds until it holds."""
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < limit_s
        time.sleep(every_s)
    return time.monotonic() - began
