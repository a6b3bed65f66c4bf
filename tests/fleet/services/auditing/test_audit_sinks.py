"""Where the audit is handed on to: real files, sockets and a web server, some of which refuse; nothing is lost."""

import json
import socket
import threading
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from django.utils import timezone

from fleet.api.system import _audit
from fleet.core.security.audit_sinks import Sinks
from fleet.models import AuditEntry, AuditSink
from fleet.services.auditing import audit, audit_chain, audit_sinks

pytestmark = pytest.mark.django_db
NOW = timezone.now() + timedelta(hours=1)
"""Later than any line of these tests."""


def note(*names: str) -> None:
    for name in names:
        audit.note("ada", door="rest", address="127.0.0.1", request="GET /", verb="read", kind="Secret", name=name)
    audit_chain.link_new(NOW)


def hand_on(settings, **sinks: str) -> None:
    settings.CONVOY_AUDIT_SINKS = Sinks(**sinks)
    audit_sinks.hand_on(NOW)


@contextmanager
def webhook():
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self.server.heard.append((self.headers["Authorization"], [json.loads(text) for text in body.splitlines()]))
            self.send_response(self.server.status)
            self.send_header("Location", "http://127.0.0.1:1/")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.heard, server.status = [], 200
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(60)


def test_a_file_gets_each_line_once_and_is_for_its_owner_alone(settings, tmp_path):
    file = tmp_path / "audit.jsonl"
    note("a", "b")
    hand_on(settings, file=str(file))
    note("c")
    hand_on(settings, file=str(file))
    hand_on(settings, file=str(file))
    assert [json.loads(text)["name"] for text in file.read_text().splitlines()] == ["a", "b", "c"]
    assert file.stat().st_mode & 0o077 == 0


def test_a_webhook_that_refuses_gets_the_lines_later_and_the_system_page_says_so(settings):
    note("a", "b")
    with webhook() as server:
        url = f"http://127.0.0.1:{server.server_port}/"
        for server.status in (500, 302, 403):
            hand_on(settings, webhook=url, webhook_token="t")
            assert _audit() == f"sink webhook: the webhook answered {server.status}"
        audit_chain.forget(NOW + timedelta(days=1), audit_sinks.delivered())
        assert AuditEntry.objects.count() == 2, "what no sink has is not forgotten"
        server.status = 200
        hand_on(settings, webhook=url, webhook_token="t")
        authorization, lines = server.heard[-1]
        assert authorization == "Bearer t" and [line["name"] for line in lines] == ["a", "b"]
    assert _audit() == "" and audit_sinks.delivered() == 2
    audit_chain.forget(NOW + timedelta(days=1), audit_sinks.delivered())
    assert not AuditEntry.objects.exists()


def test_a_sink_that_is_away_holds_up_no_other(settings, tmp_path):
    note("a")
    file = tmp_path / "audit.jsonl"
    hand_on(settings, file=str(file), webhook="http://127.0.0.1:1/", syslog=str(tmp_path / "none"))
    assert file.read_text() and set(AuditSink.objects.exclude(error="").values_list("name", flat=True)) == {
        "syslog",
        "webhook",
    }
    assert audit_sinks.delivered() == 0


def test_syslog_gets_the_lines_by_datagram_by_stream_and_locally(settings, tmp_path):
    note("a")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        udp.settimeout(60)
        hand_on(settings, syslog=f"udp://127.0.0.1:{udp.getsockname()[1]}")
        assert udp.recv(65536).startswith(b"<109>1 - - convoy - audit - {")
    AuditSink.objects.all().delete()
    with socket.create_server(("127.0.0.1", 0)) as tcp:
        tcp.settimeout(60)
        hand_on(settings, syslog=f"tcp://127.0.0.1:{tcp.getsockname()[1]}")
        size, _, text = tcp.accept()[0].recv(65536).partition(b" ")
        assert int(size) == len(text)
    AuditSink.objects.all().delete()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as local:
        local.bind(str(tmp_path / "log"))
        local.settimeout(60)
        hand_on(settings, syslog=str(tmp_path / "log"))
        assert b'"name": "a"' in local.recv(65536)


def test_a_sink_that_makes_no_sense_is_named():
    assert len(Sinks(syslog="loghost", webhook="ftp://x").faults()) == 2
    assert Sinks(syslog="/dev/log", webhook="https://x", file="x").faults() == []
