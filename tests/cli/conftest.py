"""A tiny Convoy of canned answers on a real socket, and the command line as a person runs it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.cli.builders import KINDS, Convoy


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

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

        def log_message(self, *args: object) -> None:
            """Quiet."""

    return Handler


@pytest.fixture
def server() -> Iterator[Canned]:
    canned = Canned()
    canned.on("schemas/", {"results": list(KINDS)})
    http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(canned))
    canned.url = f"http://127.0.0.1:{http.server_port}"
    Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield canned
    http.shutdown()
    http.server_close()


@pytest.fixture
def convoy(server: Canned, tmp_path: Path) -> Convoy:
    return Convoy(tmp_path, server.url)
