"""A PostgreSQL and a Valkey of one world: started from prepared files in a moment, and struck like any other process."""

import contextlib
import os
import pwd
import signal
import socket
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import Any

from deploy.supervisor import broker
from tests.faults.engine.dying import die_with

STARTS_S = 60.0
_CLOCK = """
CREATE SCHEMA faults;
CREATE TABLE faults.clock (ahead interval NOT NULL);
INSERT INTO faults.clock VALUES ('0');
CREATE FUNCTION faults.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
    AS 'SELECT pg_catalog.clock_timestamp() + (SELECT ahead FROM faults.clock)';
CREATE FUNCTION faults.statement_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
    AS 'SELECT pg_catalog.statement_timestamp() + (SELECT ahead FROM faults.clock)';
ALTER DATABASE postgres SET search_path = faults, pg_catalog, public;
"""
"""What `fleet.db.clock` and `Now()` of Django ask the server for."""
PROGRAMS = "FAULTS_POSTGRES_PROGRAMS"
"""The variable that names the folder of the server's programs: those of the project's package."""


class Server:
    """A program with children, on a port of loopback."""

    def __init__(self, argv: tuple[str, ...], port: int, log: Path, user: int | None = None) -> None:
        self._argv, self.port, self.log, self._user = argv, port, log, user
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        parent = os.getpid()
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                self._argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                user=self._user,
                cwd="/",
                preexec_fn=partial(die_with, parent),  # noqa: PLW1509 - it makes one system call
            )
        deadline = time.monotonic() + STARTS_S
        while not self._answers():
            assert time.monotonic() < deadline, f"{self._argv[0]} does not start: {self.log.read_text()[-2000:]}"
            time.sleep(0.02)

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1.0):
            return True
        return False

    def kill(self) -> None:
        """-9 for the program and its children."""
        if self._process is None:
            return
        self.signal(signal.SIGSTOP)
        self.signal(signal.SIGKILL)
        self._process.wait(20)
        self._process = None

    def signal(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        for pid in (self._process.pid, *_children(self._process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def end(self) -> None:
        """As its operator ends it."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(STARTS_S)
            self._process = None


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class Postgres(Server):
    def __init__(self, data: Path, port: int, log: Path) -> None:
        program = f"{os.environ[PROGRAMS]}/postgres"
        options = {
            "listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": "", "fsync": "off",
            "deadlock_timeout": "200ms", "max_connections": 120, "shared_buffers": "32MB", "autovacuum": "off",
            "log_lock_waits": "off",
        }  # fmt: skip
        settings = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        super().__init__((program, "-D", str(data), *settings), port, log, unprivileged(data))
        self._data = data

    def start(self) -> None:
        (self._data / "postmaster.pid").unlink(missing_ok=True)
        super().start()

    def database(self) -> dict[str, Any]:
        return {"HOST": "127.0.0.1", "PORT": str(self.port)}

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.Error:
            return False
        return True

    @property
    def url(self) -> str:
        return f"postgresql://convoy@127.0.0.1:{self.port}/postgres"

    def drop(self) -> None:
        """Ends every connection."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")

    def make_steerable_clock(self) -> None:
        """From now on, sessions find `_CLOCK` before the functions of PostgreSQL of the same names."""
        self._execute(_CLOCK)

    def step_clock(self, seconds: float) -> None:
        """The server's clock is off by so much."""
        self._execute(f"UPDATE faults.clock SET ahead = make_interval(secs => {seconds})")

    def _execute(self, statements: str) -> None:
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statements)

    def deadlocks(self) -> int:
        return self.log.read_text(errors="replace").count("deadlock detected")


def make_postgres(data: Path) -> None:
    """An empty cluster of databases."""
    data.mkdir(parents=True)
    command = [
        f"{os.environ[PROGRAMS]}/initdb",
        "-D",
        str(data),
        "-U",
        "convoy",
        "-A",
        "trust",
        "-N",
        "--no-locale",
        "-E",
        "UTF8",
    ]
    user = unprivileged(data)
    subprocess.run([*command, "--wal-segsize=1"], check=True, stdout=subprocess.DEVNULL, user=user, cwd="/")


def unprivileged(folder: Path) -> int | None:
    """PostgreSQL refuses to run as root: then its files belong to another user, as whom it runs."""
    if os.getuid() != 0:
        return None
    user = pwd.getpwnam("nobody").pw_uid
    for path in (folder, *folder.rglob("*")):
        os.chown(path, user, -1)
    folder.chmod(0o700)
    return user


class Valkey(Server):
    def __init__(self, home: Path, port: int, log: Path) -> None:
        program = broker.embedded_program() or broker.found_program()
        assert program, "there is no Valkey or Redis"
        options = ("--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(home))
        super().__init__((program, *options), port, log)

    def drop(self) -> None:
        """Forgets every message and ends every connection."""
        import redis

        with redis.Redis.from_url(self.url) as line:
            line.flushall()
            line.client_kill_filter(_type="normal", skipme=True)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"
