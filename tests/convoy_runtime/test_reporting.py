"""What a training sends of its progress, to whom, and that nothing which goes wrong there is its concern."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from convoy_runtime import reporting, stopping, watching


class Collector(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Collecting)
        self.posts: list[tuple[str, dict[str, Any]]] = []
        """Bearer and body of each."""
        self.answer, self.status = b"{}", 200


class _Collecting(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.posts.append((self.headers["Authorization"], json.loads(body)))
        if not self.server.status:
            self.wfile.write(b"this is not HTTP\r\n")
            return
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(self.server.answer)))
        self.end_headers()
        self.wfile.write(self.server.answer)

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Collector]:
    server = Collector()
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    (tmp_path / "token").write_text("secret\n")
    monkeypatch.setenv(reporting.URL, f"http://127.0.0.1:{server.server_port}/status")
    monkeypatch.setenv(reporting.TOKEN, str(tmp_path / "token"))
    monkeypatch.setenv("WORLD_SIZE", "8")
    monkeypatch.setattr(reporting, "_progress", reporting._Progress())
    monkeypatch.setattr(watching, "_pace", watching._Pace())
    monkeypatch.setattr(stopping, "_stop", False)
    yield server
    server.shutdown()
    server.server_close()


def metrics(post: tuple[str, dict[str, Any]]) -> dict[str, str]:
    return {each["name"]: each["value"] for each in post[1]["trainerStatus"]["metrics"]}


def test_its_last_step_has_been_sent_when_the_function_returns(fleet: Collector):
    reporting.report(3000, 0.25, 3000)
    (post,) = fleet.posts
    assert post[0] == "Bearer secret"
    assert post[1]["trainerStatus"]["progressPercentage"] == 100
    assert metrics(post) == {"current_step": "3000", "total_steps": "3000", "loss": "0.25", "world_size": "8"}


def test_a_last_step_that_could_not_be_kept_is_sent_once_more(fleet: Collector, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reporting, "_AGAIN_S", 0.0)
    fleet.status = 503
    reporting.report(3000, total=3000)
    assert [metrics(post)["current_step"] for post in fleet.posts] == ["3000"] * 2


def test_only_the_first_rank_sends(fleet: Collector, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RANK", "1")
    reporting.report(10, total=10)
    reporting.saved(10)
    assert fleet.posts == []


def test_many_steps_are_one_report(fleet: Collector):
    sent = threading.Event()
    fleet.answer = b"[]"
    for step in range(1, 200):
        reporting.report(step, total=200)
    thread = reporting._progress.thread
    while not fleet.posts:
        assert thread is not None and thread.is_alive()
        sent.wait(0.01)
    reporting.report(200, total=200)
    assert len(fleet.posts) == 2 and metrics(fleet.posts[-1])["current_step"] == "200"


def test_it_stops_when_the_answer_says_so_and_says_what_it_saved(fleet: Collector):
    fleet.answer = b'{"stop": true}'
    reporting.report(9, total=9)
    assert stopping.stop_requested()
    reporting.saved(9, "disk", 1.5)
    assert metrics(fleet.posts[-1])["saved_step"] == "9", "at once: it is about to leave"


@pytest.mark.parametrize("answer", [b"", b"not JSON", b"[1]", b'{"stop": "yes"}'])
def test_an_answer_that_it_does_not_know_means_nothing(fleet: Collector, answer: bytes):
    fleet.answer = answer
    reporting.report(9, total=9)
    assert len(fleet.posts) == 1 and not stopping.stop_requested()


@pytest.mark.parametrize("broken", ["status", "token", "url", "away", "protocol"])
def test_what_cannot_be_sent_is_not_the_trainings_concern(
    fleet: Collector, monkeypatch: pytest.MonkeyPatch, broken: str
):
    if broken in ("status", "protocol"):
        fleet.status = 429 if broken == "status" else 0
    elif broken == "token":
        monkeypatch.setenv(reporting.TOKEN, "/nowhere")
    else:
        monkeypatch.setenv(reporting.URL, "file:///etc/hostname" if broken == "url" else "http://127.0.0.1:1/")
    reporting.report(9, total=9)
    assert len(fleet.posts) == (broken in ("status", "protocol")) and not stopping.stop_requested()


def test_numbers_of_numpy_are_numbers(fleet: Collector, capfd: pytest.CaptureFixture[str]):
    reporting.report(np.int64(9), np.float32(0.5), np.int64(9))
    reporting.saved(np.int64(9), "disk", np.float32(1.5))
    assert fleet.posts[0][1]["trainerStatus"]["progressPercentage"] == 100
    assert metrics(fleet.posts[0])["current_step"] == "9"
    line = json.loads(capfd.readouterr().out)
    assert (line["step"], line["seconds"]) == (9, 1.5)


def test_a_time_to_the_end_that_is_longer_than_the_protocol_allows_is_the_longest(fleet: Collector):
    for step, moment in ((1, 0.0), (2, 1e9)):
        watching.note_step(step, moment)
    reporting._progress.step, reporting._progress.total = 2, 1000
    status = json.loads(reporting._progress.body())["trainerStatus"]
    assert status["estimatedRemainingSeconds"] == 2**31 - 1
