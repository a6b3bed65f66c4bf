"""Passwords tried from many addresses at once: checking them is work by design, and no other request waits for it."""

import http.client
import json
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from deploy.bootstrap.home import ROOT
from deploy.supervisor.product import web_command
from tests.support import kubectl, template
from tests.support.free_ports import free_port

pytestmark = pytest.mark.processes
ATTEMPTS, READS = 24, 6


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    home, port = tmp_path_factory.mktemp("web"), free_port()
    env = template.home_at(home) | {"CONVOY_TRUSTED_PROXIES": "127.0.0.1"}
    with subprocess.Popen(web_command(port), cwd=ROOT, env=env) as process:
        while not kubectl.answers(port):
            assert process.poll() is None
            time.sleep(0.2)
        yield port
        process.terminate()


def ask(port: int, method: str, path: str, body: object = None, **headers: str) -> http.client.HTTPResponse:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    line.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json", **headers})
    answer = line.getresponse()
    answer.read()
    return answer


def test_no_request_waits_for_the_passwords_of_others(port: int) -> None:
    cookie = (ask(port, "GET", "/api/v1/session/").getheader("Set-Cookie") or "").partition(";")[0]
    csrf = {"Cookie": cookie, "X-CSRFToken": cookie.partition("=")[2]}

    def attempt(number: int) -> int:
        wrong = {"username": f"user{number}", "password": "wrong"}
        address = {"X-Forwarded-For": f"10.0.1.{number}"}
        return ask(port, "POST", "/api/v1/session/", wrong, **csrf, **address).status

    with ThreadPoolExecutor(ATTEMPTS) as many:
        attempts = [many.submit(attempt, number) for number in range(ATTEMPTS)]
        while not any(each.done() for each in attempts):
            time.sleep(0.01)
        for _ in range(READS):
            assert ask(port, "GET", "/livez").status == 200
            assert ask(port, "GET", "/api/v1/session/").status == 200
        waiting = sum(not each.done() for each in attempts)
        codes = {each.result() for each in attempts}
    assert waiting > ATTEMPTS / 2, "reads were answered only after the passwords"
    assert codes == {401}, codes
