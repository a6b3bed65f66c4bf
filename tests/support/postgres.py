"""A PostgreSQL of a test's own, on a free port of 127.0.0.1, thrown away afterwards; only where the programs are at hand."""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deploy.bootstrap import ports

MISSING = [program for program in ("initdb", "pg_ctl", "postgres") if shutil.which(program) is None]
_STOPS_S = 60
_TESTS_S = 240


def passes(tests: Path, *, but: str = "") -> None:
    """The tests of this file, with a PostgreSQL for a database; none may be skipped, and ``but`` is left out."""
    with started() as url:
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(tests)]
        command += ["-k", f"not {but}"] if but else []
        done = subprocess.run(
            command,
            env={**os.environ, "DATABASE_URL": url},
            capture_output=True,
            text=True,
            check=False,
            timeout=_TESTS_S,
        )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "100%" in done.stdout and "skipped" not in done.stdout


@contextmanager
def started() -> Iterator[str]:
    """Its URL."""
    home, port = Path(tempfile.mkdtemp(prefix="convoy-pg-")), ports.any_free(0)
    somebody = _unprivileged(home)
    data, log = home / "data", home / "log"

    def run(*command: str) -> None:
        subprocess.run(command, check=True, cwd=home, user=somebody, stdout=subprocess.DEVNULL, timeout=_STOPS_S)

    try:
        run("initdb", "-D", str(data), "-U", "convoy", "-A", "trust", "-N")
        options = f"-c listen_addresses=127.0.0.1 -p {port} -k {home} -c fsync=off"
        run("pg_ctl", "-D", str(data), "-l", str(log), "-w", "-o", options, "start")
        try:
            yield f"postgresql://convoy@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "-D", str(data), "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _unprivileged(home: Path) -> int | None:
    """PostgreSQL refuses to run as root: then it is somebody else's."""
    if os.getuid() != 0:
        return None
    somebody = pwd.getpwnam("nobody").pw_uid
    os.chown(home, somebody, -1)
    return somebody
