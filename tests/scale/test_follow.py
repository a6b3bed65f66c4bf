"""Benchmark ``follow``: one watcher, 100 members of 200 nodes with 20 pods each, 500 changes a second, and a black hole.

Result in ``.convoy/bench/follow.json``: the watcher's memory, threads and connections, the time until all lists are in rows,
and how long after each change its row shows it. The members are a process of their own that speaks HTTP/2 (`follow_members`),
the database is PostgreSQL that writes to disk. ``CONVOY_BENCH_MEMBERS`` changes the number of members.
"""

import json
import os
import secrets
import socket
import subprocess
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from deploy.bootstrap.home import ROOT

pytestmark = pytest.mark.bench
MEMBERS = int(os.environ.get("CONVOY_BENCH_MEMBERS", "100"))
NODES, PODS, OWN, RATE, SECONDS = 200, 20, 50, 500, 60
MOST_MIB, LATE_S = 600, 1.0
POLL_S = 0.02
PREPARE = """
import json, sys, uuid
import django
django.setup()
from django.utils import timezone
from fleet.core.members import marks
from fleet.models import Cluster
from fleet.services.members import event_handlers, signing
now, apis, labels = timezone.now(), {}, {}
for kind in event_handlers.resources():
    apis.setdefault(kind.api_version, {})[kind.kind] = kind.plural
for number in range(int(sys.argv[1])):
    row = Cluster.objects.create(name=f"m{number}", access={}, apis=apis, state="Ready", state_since=now, joined_at=now)
    job = str(uuid.uuid4())
    mark = signing.sign_pods(row, job, 1, "team")
    labels[row.name] = {marks.JOB_UID: job, marks.ATTEMPT: "1", marks.POD_MARK: mark}
print(json.dumps(labels))
"""
CONNECT = """
import sys
import django
django.setup()
from django.utils import timezone
from fleet.member.client import Access
from fleet.models import Cluster
from fleet.services.members import member_clients
port, hole, ca = sys.argv[1], sys.argv[2], open(sys.argv[3]).read()
for row in Cluster.objects.all():
    row.access = member_clients.stored(Access(f"https://127.0.0.1:{port}/{row.name}", ca, "token"))
    row.save(update_fields=["access"])
access = member_clients.stored(Access(f"https://127.0.0.1:{hole}", ca, "token"))
now = timezone.now()
Cluster.objects.create(name="hole", access=access, apis=row.apis, state="Ready", state_since=now, joined_at=now)
"""


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


@pytest.fixture
def environ(postgres: str, tmp_path: Path) -> dict[str, str]:
    environ = {
        **os.environ,
        "DATABASE_URL": postgres,
        "CONVOY_HOME": str(tmp_path / "home"),
        "CONVOY_SECRET_KEY": secrets.token_hex(32),
        "CONVOY_ENCRYPTION_KEYS": urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        "DJANGO_SETTINGS_MODULE": "deploy.config.settings",
    }
    subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=ROOT, env=environ, check=True)
    return environ


def script(environ: dict[str, str], text: str, *arguments: str) -> str:
    command = [sys.executable, "-c", text, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environ, check=True, capture_output=True, text=True).stdout


@contextmanager
def running(*command: str, environ: dict[str, str], log: Path) -> Iterator["subprocess.Popen[str]"]:
    pipe = subprocess.PIPE
    with (
        log.open("w") as errors,
        subprocess.Popen(command, cwd=ROOT, env=environ, stdin=pipe, stdout=pipe, stderr=errors, text=True) as process,
    ):
        yield process
        process.kill()


def facts(pid: int) -> dict[str, int]:
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    sockets = sum(os.readlink(link).startswith("socket:") for link in Path(f"/proc/{pid}/fd").iterdir())
    return {
        "rss_mib": int(status["VmRSS"].split()[0]) // 1024,
        "most_rss_mib": int(status["VmHWM"].split()[0]) // 1024,
        "threads": int(status["Threads"]),
        "sockets": sockets,
    }


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def follow(database: "psycopg.Connection[Any]", began: float) -> list[float]:
    """How long after it was due each change that was still its pod's latest was seen in its row."""
    seen: dict[int, float] = {}
    newest, last = 0, RATE * SECONDS
    while newest < last and time.time() < began + SECONDS + 60:
        rows = database.execute("SELECT restarts FROM fleet_pod WHERE restarts > %s", [newest - 2 * RATE]).fetchall()
        now = time.time()
        for (number,) in rows:
            seen.setdefault(number, now - began - number / RATE)
        newest = max([newest, *(number for (number,) in rows)])
        time.sleep(POLL_S)
    return list(seen.values())


def test_one_watcher_follows_a_hundred_members(
    environ: dict[str, str], postgres: str, tmp_path: Path, report: Callable[[str, dict[str, Any]], None]
) -> None:
    labels = json.loads(script(environ, PREPARE, str(MEMBERS)))
    facts_of_plan = {"members": MEMBERS, "nodes": NODES, "pods": PODS, "own": OWN, "rate": RATE, "seconds": SECONDS}
    (tmp_path / "plan.json").write_text(json.dumps({**facts_of_plan, "labels": labels}))
    members = running(
        sys.executable, "-m", "tests.scale.follow_members", str(tmp_path), environ=environ, log=tmp_path / "members.log"
    )
    with (
        socket.create_server(("127.0.0.1", 0)) as hole,
        members as server,
        psycopg.connect(postgres, autocommit=True) as db,
    ):
        assert server.stdin and server.stdout
        port = server.stdout.readline().strip()
        script(environ, CONNECT, port, str(hole.getsockname()[1]), str(tmp_path / "pki" / "ca.pem"))
        command = (sys.executable, "manage.py", "watch_members")
        with running(*command, environ=environ, log=tmp_path / "watcher.log") as watcher:
            began = time.monotonic()

            def count(query: str) -> int:
                row = db.execute(query).fetchone()
                return int(row[0]) if row else 0

            while count("SELECT count(*) FROM fleet_cluster WHERE watched_until > now() - interval '5 s'") < MEMBERS:
                assert time.monotonic() - began < 900 and watcher.poll() is None, (
                    tmp_path / "watcher.log"
                ).read_text()[-4000:]
                time.sleep(0.5)
            listed_s, listed = time.monotonic() - began, facts(watcher.pid)
            assert count("SELECT count(*) FROM fleet_node") == MEMBERS * NODES
            used = cpu_s(watcher.pid)
            server.stdin.write("go\n")
            server.stdin.flush()
            late = follow(db, float(server.stdout.readline()))
            used = cpu_s(watcher.pid) - used
            found = facts(watcher.pid)
            confirmed = count("SELECT count(*) FROM fleet_cluster WHERE watched_until > now() - interval '5 s'")
    report(
        "follow",
        {
            **facts_of_plan,
            "listed_s": round(listed_s, 1),
            "rss_mib_once_listed": listed["rss_mib"],
            **found,
            "cores_at_rate": round(used / SECONDS, 2),
            "changes_seen": len(late),
            "late_s": {
                f"p{round(share * 1000) / 10:g}": round(percentile(late, share), 3) for share in (0.5, 0.9, 0.99, 0.999)
            },
        },
    )
    assert confirmed == MEMBERS, "a member that is a black hole keeps others from being confirmed"
    assert found["most_rss_mib"] <= MOST_MIB
    assert percentile(late, 0.99) <= LATE_S
