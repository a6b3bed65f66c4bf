"""A PostgreSQL of a test's own, on a free port of 127.0.0.1, thrown away afterwards; only where the programs are at hand.

Whatever ran on it has failed when the server's log tells of a deadlock: PostgreSQL ends one by ending a transaction, which the
product may have tried again. ``python -m tests.support.postgres tests/jobs ...`` runs any tests so, with pytest's arguments.
"""

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


def passes(*tests: Path, but: str = "", skips: bool = False, **env: str) -> None:
    """The tests of these files, with a PostgreSQL for a database; none may be skipped unless ``skips``, ``but`` is left out."""
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
    """Its URL."""
    home, port = Path(tempfile.mkdtemp(prefix="convoy-pg-")), ports.any_free(0)
    somebody = _unprivileged(home)
    data, log = home / "data", home / "log"

    def run(*command: str) -> None:
        subprocess.run(command, check=True, cwd=home, user=somebody, stdout=subprocess.DEVNULL, timeout=_STOPS_S)

    try:
        run("initdb", "-D", str(data), "-U", "convoy", "-A", "trust", "-N")
        options = f"-c listen_addresses=127.0.0.1 -p {port} -k {home} -c fsync=off -c deadlock_timeout=200ms"
        run("pg_ctl", "-D", str(data), "-l", str(log), "-w", "-o", options, "start")
        try:
            yield f"postgresql://convoy@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "-D", str(data), "-w", "-m", "immediate", "stop")
        deadlocks = deadlocks_in(log.read_text())
        assert not deadlocks, f"{len(deadlocks)} deadlocks, the first:\n{deadlocks[0]}"
    finally:
        shutil.rmtree(home, ignore_errors=True)


def deadlocks_in(log: str) -> list[str]:
    """What the server told of each."""
    lines = log.splitlines()
    return ["\n".join(lines[at : at + 14]) for at, line in enumerate(lines) if "deadlock detected" in line]


def _unprivileged(home: Path) -> int | None:
    """PostgreSQL refuses to run as root: then it is somebody else's."""
    if os.getuid() != 0:
        return None
    somebody = pwd.getpwnam("nobody").pw_uid
    os.chown(home, somebody, -1)
    return somebody


if __name__ == "__main__":
    with started() as server:
        tests = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                *(sys.argv[1:] or ["tests/jobs", "tests/fleet", "tests/quotas", "tests/flows"]),
            ],
            env={**os.environ, "DATABASE_URL": server},
            check=False,
        )
    sys.exit(tests.returncode)
