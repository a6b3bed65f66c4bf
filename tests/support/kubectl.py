"""Convoy's Kubernetes-style door as it is served, on a port of its own, and a stock kubectl in front of it."""

import base64
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from django.core.management import call_command

from deploy.bootstrap.home import ROOT
from fleet.member.client import Access, MemberClient
from tests.support import template
from tests.support.free_ports import free_port

BINARY = Path(sys.executable).with_name("kubectl")
PATIENCE_S = 120


class Kubectl:
    """Commands in one person's name."""

    def __init__(self, home: Path, port: int, requests: Set[Any]) -> None:
        self.home, self.port = home, port
        self.requests = requests
        """Those being answered now, open watches among them."""

    def as_user(self, user: str) -> "Person":
        file = self.home / f"{user}.kubeconfig"
        call_command("write_kubeconfig", user=user, server=f"https://127.0.0.1:{self.port}", file=file, verbosity=0)
        return Person(file, self.home)


class Person:
    def __init__(self, file: Path, home: Path) -> None:
        self.file, self.home = file, home

    def command(self, *args: str) -> list[str]:
        options = ("--kubeconfig", str(self.file), "--cache-dir", str(self.home / "cache"))
        return [str(BINARY), *options, "--request-timeout", f"{PATIENCE_S}s", *args]

    def tries(self, *args: str, given: str = "") -> subprocess.CompletedProcess[str]:
        command = self.command(*args)
        return subprocess.run(command, input=given, capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    def says(self, *args: str, given: str = "") -> str:
        """What it prints, errors and warnings included, when it succeeds."""
        done = self.tries(*args, given=given)
        assert done.returncode == 0, f"kubectl {' '.join(args)}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def refused(self, *args: str, given: str = "") -> str:
        done = self.tries(*args, given=given)
        assert done.returncode != 0, done.stdout
        return done.stderr

    @contextmanager
    def running(self, *args: str) -> Iterator[subprocess.Popen[str]]:
        with subprocess.Popen(self.command(*args), stdout=subprocess.PIPE, text=True) as process:
            yield process
            process.terminate()


def client_of(kubeconfig: Path) -> MemberClient:
    """The same door without kubectl."""
    known = yaml.safe_load(kubeconfig.read_text())
    cluster, user = known["clusters"][0]["cluster"], known["users"][0]["user"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    return MemberClient(Access(cluster["server"], authority, user["token"]), timeout_s=PATIENCE_S)


@contextmanager
def process(home: Path, *, prepare: str = "") -> Iterator[tuple["subprocess.Popen[bytes]", Path]]:
    """The door as a process of its own on a new database, prepared by a script; and a kubeconfig of user admin."""
    env = template.home_at(home)
    port, file = free_port(), home / "kubeconfig"
    if prepare:
        subprocess.run([sys.executable, "-c", prepare], cwd=ROOT, env=env, check=True)
    command = [sys.executable, "-m", "deploy.config.kube", "--port", str(port), "--kubeconfig"]
    with subprocess.Popen(command, cwd=ROOT, env=env) as server:
        while not answers(port):
            assert server.poll() is None
            time.sleep(0.2)
        yield server, file
        server.terminate()


def answers(port: int) -> bool:
    with socket.socket() as knock:
        return knock.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def served(home: Path) -> Iterator[Kubectl]:
    from deploy.config.kube import server

    running = server(0)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as door:
        door.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=running.run, kwargs={"sockets": [door]}, daemon=True)
        thread.start()
        while not running.started and thread.is_alive():
            time.sleep(0.01)
        yield Kubectl(home, door.getsockname()[1], running.server_state.tasks)
        running.should_exit = True
        thread.join(60)
