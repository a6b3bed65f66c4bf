"""Each process without a web page answers for its own counters on a port of its own; without a free one it does its work."""

import socket
import urllib.request

import pytest
from django.core.management import call_command

from deploy.config import celery, kube
from fleet.api.http import exposition
from fleet.management.commands import watch_members
from fleet.services.watching.manager import WatchManager
from tests.support.free_ports import free_port


class Serving:
    """The work of a process, which asks once for the metrics that the process serves."""

    started = True

    def __init__(self, port: int) -> None:
        self.port, self.answer = port, ""

    def run(self, *_: object) -> None:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=60) as response:
            self.answer = response.read().decode()


def watcher(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WatchManager, "run", serving.run)
    monkeypatch.setattr(watch_members.signal, "signal", lambda *_: None)
    call_command("watch_members")


def kube_api(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kube, "server", lambda *_: serving)
    monkeypatch.setattr("sys.argv", ["kube"])
    assert kube.main() == 0


def worker(serving: Serving, _: pytest.MonkeyPatch) -> None:
    celery._serve_metrics()
    serving.run()


@pytest.fixture
def port(monkeypatch):
    """A port for the metrics of a process, free again after the test."""
    servers = []
    start = exposition.start_http_server

    def start_and_keep(*args, **kwargs):
        server, thread = start(*args, **kwargs)
        servers.append(server)
        return server, thread

    monkeypatch.setattr(exposition, "start_http_server", start_and_keep)
    monkeypatch.setattr("fleet.gc_tuning.shorten", lambda: None)
    number = free_port()
    monkeypatch.setenv("CONVOY_METRICS_PORT", str(number))
    yield number
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("process", [watcher, kube_api, worker])
def test_it_answers_for_its_counters_while_it_works(process, port, monkeypatch):
    serving = Serving(port)
    process(serving, monkeypatch)
    assert "convoy_watch_restarts_total" in serving.answer


def test_it_works_without_metrics_where_another_process_has_the_port(port, caplog):
    with socket.create_server(("127.0.0.1", port)):
        assert exposition.serve() is None
    assert "metrics are not served" in caplog.text and "CONVOY_METRICS_PORT" in caplog.text
