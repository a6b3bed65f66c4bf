"""Commands that `up` runs beside the product: forked from what has imported it, or started where that is not possible."""

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.bootstrap import management
from deploy.bootstrap.home import ROOT, Home
from deploy.bootstrap.problems import Problem
from deploy.supervisor import forked, processes, product
from tests.support.product import wait

FORKS = pytest.mark.skipif(not forked.IS_POSSIBLE, reason="forks on Linux only")
CMDLINE = 'print(open("/proc/self/cmdline").read().replace(chr(0), " "))'


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.make()
    return home


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as a busy machine needs: whoever waits in vain starts the command by itself."""
    monkeypatch.setattr(forked, "PATIENCE_S", 120.0)


@pytest.fixture(scope="module")
def preloaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """One process that has imported the product, for all tests of this file."""
    home = Home(tmp_path_factory.mktemp("preloaded") / "home")
    home.make()
    door = product.preload_door(home.path)
    assert door is not None
    env = {**os.environ, "CONVOY_HOME": str(home.path), "DJANGO_SETTINGS_MODULE": "deploy.config.settings"}
    process = subprocess.Popen([sys.executable, "-m", "deploy.config.preload", str(door)], cwd=ROOT, env=env)
    wait(door.exists)
    yield home
    process.terminate()
    process.wait(60)


def printed(home: Home, *argv: str, may_fork: bool = True) -> str:
    with management.command(home, *argv, doing="try it", may_fork=may_fork) as output:
        return output()


@FORKS
def test_it_forks_a_command_from_the_process_that_has_imported_the_product(preloaded: Home) -> None:
    assert "deploy.config.preload" in printed(preloaded, "shell", "--no-imports", "-v0", "-c", CMDLINE)
    assert "manage.py" in printed(preloaded, "shell", "--no-imports", "-v0", "-c", CMDLINE, may_fork=False)


def test_it_starts_a_command_by_itself_where_nothing_forks(home: Home) -> None:
    assert "manage.py" in printed(home, "shell", "--no-imports", "-v0", "-c", CMDLINE)


@FORKS
@pytest.mark.parametrize(
    "request_", [b"", b"nonsense", b'{"supervisor": "nobody", "argv": ["-c"]}'], ids=["none", "bad", "half"]
)
def test_a_caller_that_asks_for_nothing_useful_keeps_nobody_waiting(preloaded: Home, request_: bytes) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.connect(str(product.preload_door(preloaded.path)))
        line.sendall(request_)
        assert "deploy.config.preload" in printed(preloaded, "shell", "--no-imports", "-v0", "-c", CMDLINE)
    assert len(_forking(preloaded)) == 1, "what was forked in vain has not become a second one that forks"


def _forking(home: Home) -> list[int]:
    """Processes that hold the socket open."""
    door = str(product.preload_door(home.path))
    inodes = {line.split()[6] for line in Path("/proc/net/unix").read_text().splitlines() if line.endswith(door)}
    held = {f"socket:[{inode}]" for inode in inodes}
    return [int(pid.name) for pid in Path("/proc").iterdir() if pid.name.isdigit() and held & _sockets(pid)]


def _sockets(process: Path) -> set[str]:
    links = set()
    with contextlib.suppress(OSError):
        for file in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                links.add(os.readlink(file))
    return links


@FORKS
def test_it_says_why_a_forked_command_failed(preloaded: Home) -> None:
    with pytest.raises(Problem, match="no such user"):
        printed(preloaded, "shell", "--no-imports", "-v0", "-c", "raise SystemExit('no such user')")


@FORKS
def test_it_leaves_no_forked_command_behind(preloaded: Home) -> None:
    pid_file = preloaded.path / "pid"
    script = f"import os, time; open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(300)"
    with management.command(preloaded, "shell", "--no-imports", "-v0", "-c", script, doing="sleep", may_fork=True):
        wait(lambda: pid_file.exists() and pid_file.read_text())
        pid = int(pid_file.read_text())
        assert processes.born(pid)
    assert processes.born(pid) is None


def test_a_database_is_migrated_once(home: Home) -> None:
    assert "Applying jobs.0001" in printed(home, "migrate_if_needed")
    assert printed(home, "migrate_if_needed").strip() == "The database has every migration."
