"""How a training hears that it is to stop, without torch and without Convoy."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from convoy_runtime import agreement, stopping

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def nothing_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopping, "_stop", False)


def say(port: int, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=180) as client:
        client.sendall(request)
        return client.recv(100)


def test_it_hears_a_notice_although_other_clients_say_nothing():
    port = stopping.listen(0)
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(5)]
    assert not stopping.stop_requested()
    assert say(port, b"GET /stop HTTP/1.0\r\n\r\n") == b"ok", "the two bytes that the supervisor waits for"
    assert stopping.stop_requested() and agreement.agree()
    for client in silent:
        client.close()


@pytest.mark.parametrize(
    "request_", [b"GET / HTTP/1.0\r\n\r\n", b"POST /stop HTTP/1.0\r\n\r\n", b"GET /stops HTTP/1.0\r\n\r\n", b"\x00"]
)
def test_it_takes_nothing_else_for_a_notice(request_: bytes):
    assert say(stopping.listen(0), request_) == b""
    assert not stopping.stop_requested()


def test_a_second_process_of_the_pod_goes_on_without_the_port():
    port = stopping.listen(0)
    assert port and stopping.listen(port) == 0


def test_it_stops_by_sigterm_after_a_handler_that_was_there_before():
    script = (
        "import os, signal\n"
        "signal.signal(signal.SIGTERM, lambda *_: print('former', flush=True))\n"
        "import convoy_runtime as convoy\n"
        "convoy.start(listen=False, watch=False); convoy.start()\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
        "print(convoy.stop_requested(), convoy.agree())\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=180)
    assert (ended.returncode, ended.stdout.split()) == (0, ["former", "True", "True"]), ended.stderr


def test_importing_it_installs_nothing():
    installed = "signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, threading.active_count()"
    script = f"import signal, threading, convoy_runtime; print({installed})"
    ended = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=180)
    assert ended.stdout.split() == ["True", "1"], ended.stderr
