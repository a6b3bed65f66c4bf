"""A tiny Convoy of canned answers on a real socket, and the command line as a person runs it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qsl, urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "cvy_" + "t" * 43
JOB_ID = "11111111-1111-1111-1111-111111111111"


def ago(seconds: float) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat()


def job(name: str = "llama", **fields):
    asked = {"nvidia.com/gpu": 1, "cpu": 1000, "memory": 2 * 2**30, "pods": 1}
    return {
        "id": JOB_ID, "kind": "PyTorchJob", "api_version": "kubeflow.org/v1", "namespace": "default", "name": name,
        "state": "Running", "reason": None, "cluster": "north", "attempt": 1, "created_at": ago(17960), "queued_at": ago(17960),
        "started_at": ago(13460), "finished_at": None, "deleting_at": None, "gpus": 3, "priority": 0, "suspended": False,
        "roles": [{"name": "master", "replicas": 1, "request": asked}, {"name": "worker", "replicas": 2, "request": asked}],
        "total": {key: 3 * value for key, value in asked.items()}, "labels": {"team": "vision"}, "actions": {},
        "policy": {"kind": "PropagationPolicy", "namespace": "default", "name": "example-policy"},
    } | fields  # fmt: skip


def cluster(name: str = "north", **fields):
    gpus = {"allocatable": 8, "requested": 3, "held": 1, "free": 4}
    return {
        "name": name, "state": "Ready", "reason": "", "message": "", "cordoned": False, "version": "v1.31.0",
        "region": "eu", "zone": "", "labels": {}, "taints": [], "last_heartbeat": ago(1),
        "nodes": {"total": 4, "ready": 4}, "capacity": {"nvidia.com/gpu": gpus},
    } | fields  # fmt: skip


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, str]
    body: bytes
    headers: dict[str, str]


@dataclass
class Canned:
    """``answers`` by method and path; a callable is asked anew each time."""

    url: str = ""
    answers: dict = field(default_factory=dict)
    seen: list[Request] = field(default_factory=list)

    def on(self, path: str, body, *, method: str = "GET", status: int = 200) -> None:
        self.answers[method, "/api/v1/" + path] = (status, body)

    def page(self, path: str, *items) -> None:
        self.on(path, {"count": len(items), "results": list(items)})

    def refuse(self, path: str, status: int, detail: str, *, method: str = "GET", errors=()) -> None:
        told = {"title": "Refused", "status": status, "detail": detail, "errors": list(errors)}
        self.on(path, told, method=method, status=status)

    def sent(self, method: str) -> Request:
        return next(each for each in self.seen if each.method == method)


def _handler(canned: Canned) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            split = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            query = dict(parse_qsl(split.query))
            canned.seen.append(Request(self.command, split.path, query, body, dict(self.headers)))
            missing = (404, {"title": "Not found", "detail": "there is no such object"})
            status, content = canned.answers.get((self.command, split.path), missing)
            content = content() if callable(content) else content
            raw = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        do_GET = do_POST = do_DELETE = answer

        def log_message(self, *args: object) -> None:
            """Quiet."""

    return Handler


@pytest.fixture
def server() -> Iterator[Canned]:
    canned = Canned()
    http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(canned))
    canned.url = f"http://127.0.0.1:{http.server_port}"
    Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield canned
    http.shutdown()
    http.server_close()


@dataclass
class Said:
    code: int
    out: str
    err: str


class Convoy:
    """The real command in a process of its own, in an empty home."""

    def __init__(self, home: Path, url: str) -> None:
        self.home = home
        self.env = {
            "PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(ROOT), "CONVOY_URL": url,
            "CONVOY_TOKEN": TOKEN, "NO_PROXY": "*",
        }  # fmt: skip

    def __call__(self, *words: str, stdin: str = "", **env: str) -> Said:
        done = subprocess.run(
            self.command(*words),
            input=stdin, capture_output=True, text=True, env=self.env | env, cwd=self.home, timeout=30,
        )  # fmt: skip
        return Said(done.returncode, done.stdout, done.stderr)

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "frontend.cli.main", *words]


@pytest.fixture
def convoy(server: Canned, tmp_path: Path) -> Convoy:
    return Convoy(tmp_path, server.url)
