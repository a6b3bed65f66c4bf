"""The processes themselves, as the product starts them: what ended or stalled them once is sent, and they go on answering."""

import base64
import json
import os
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from deploy.bootstrap.home import ROOT
from deploy.supervisor.product import web_command
from tests.attacks.bodies import JSON, YAML
from tests.support import kubectl, template
from tests.support.free_ports import free_port

pytestmark = pytest.mark.processes
PREPARE = """
import django; django.setup()
from django.contrib.auth import get_user_model
from django.utils import timezone
from fleet.models import Grant
from fleet.services.authorization import access
user = get_user_model().objects.create_user("vic")
Grant.objects.create(user=user, role=Grant.Role.VIEWER, namespace="default")
print(access.mint(user, "attack", life=None, now=timezone.now())[1])
"""
CPU_S = 2.0
"""Of one request; what stalled a process took minutes."""


class Server:
    def __init__(
        self, process: subprocess.Popen[bytes], url: str, token: str, trust: ssl.SSLContext | None = None
    ) -> None:
        self.process, self._url, self._token, self._trust = process, url, token, trust
        self._times = Path(f"/proc/{process.pid}/stat")

    def post(self, path: str, body: bytes, kind: str, **headers: str) -> tuple[int, float]:
        """The code, and the seconds of its own time the process took."""
        before = self._cpu()
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind, **headers}
        request = urllib.request.Request(self._url + path, data=body or None, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=120, context=self._trust) as answer:
                code = answer.status
        except urllib.error.HTTPError as e:
            code = e.code
        assert self.process.poll() is None
        return code, self._cpu() - before

    def _cpu(self) -> float:
        """0 where a system does not say it there."""
        if not self._times.exists():
            return 0.0
        user, system = self._times.read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home, port = tmp_path_factory.mktemp("web"), free_port()
    env = template.home_at(home)
    token = subprocess.run(
        [sys.executable, "-c", PREPARE], cwd=ROOT, env=env, check=True, capture_output=True, text=True
    )
    with subprocess.Popen(web_command(port), cwd=ROOT, env=env) as process:
        _await(process, port)
        yield Server(process, f"http://127.0.0.1:{port}", token.stdout.split()[-1])
        process.terminate()


@pytest.fixture(scope="module")
def kube(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with kubectl.process(tmp_path_factory.mktemp("kube")) as (process, file):
        known = yaml.safe_load(Path(file).read_text())
        trust = ssl.create_default_context(cadata=_authority(known))
        yield Server(process, known["clusters"][0]["cluster"]["server"], known["users"][0]["user"]["token"], trust)


def _authority(kubeconfig: dict) -> str:
    return base64.b64decode(kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"]).decode()


def _await(process: subprocess.Popen[bytes], port: int) -> None:
    while not kubectl.answers(port):
        assert process.poll() is None
        time.sleep(0.2)


def test_a_viewer_does_not_end_the_web_process(web: Server) -> None:
    for name, body in YAML.items():
        asked = json.dumps({"add_job": body.decode("latin-1")}).encode()
        code, cpu = web.post("/api/v1/whatif/", asked, "application/json")
        assert 400 <= code < 500 and cpu < CPU_S, (name, code, cpu)
    for name, body in JSON.items():
        for path in ("/api/v1/whatif/", "/api/v1/apply/", "/api/v1/tokens/"):
            code, cpu = web.post(path, body, "application/json")
            assert code < 500 and cpu < CPU_S, (name, path, code, cpu)


def test_no_body_stalls_the_kubernetes_style_door(kube: Server) -> None:
    review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    large = {
        "sixtieths": b"a: " + b"1:" * 1_500_000 + b"1",
        "lines": b"a: b\n" + b" c\n" * 1_000_000,
        "list": b"- a\n" * 700_000,
    }
    for name, body in {**YAML, **large}.items():
        code, cpu = kube.post(review, body, "application/yaml")
        assert code < 500 and cpu < CPU_S, (name, code, cpu)


@pytest.mark.parametrize("blanks", [8_000, 30_000])
def test_no_selector_stalls_the_kubernetes_style_door(kube: Server, blanks: int) -> None:
    path = f"/api/v1/namespaces/default/configmaps?labelSelector=a{'+' * blanks}("
    code, cpu = kube.post(path, b"", "application/json")
    assert code == 400 and cpu < CPU_S


def test_it_refuses_long_heads(web: Server, kube: Server) -> None:
    for server in (web, kube):
        assert server.post("/" + "a" * 40_000, b"", "application/json")[0] == 414
        assert server.post("/livez", b"", "application/json", Padding="x" * 30_000)[0] == 200
        assert server.post("/livez", b"", "application/json")[0] == 200


def test_it_hangs_up_on_a_head_without_an_end(web: Server) -> None:
    port = int(web._url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=60) as line:
        line.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nPadding: ")
        answer = b""
        try:
            for _ in range(64):
                line.sendall(b"x" * 16_384)
            answer = line.recv(100)
        except (BrokenPipeError, ConnectionResetError):
            answer = b"HTTP/1.1 431"
    assert b" 431" in answer
    assert web.process.poll() is None


def test_it_believes_no_stranger_about_where_it_comes_from(web: Server) -> None:
    codes = [
        web.post("/api/v1/session/", b"{}", "application/json", **{"X-Forwarded-For": f"10.0.0.{i}"})[0]
        for i in range(100)
    ]
    assert codes[-1] == 429
