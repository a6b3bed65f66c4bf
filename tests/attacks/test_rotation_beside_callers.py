"""Keys are rotated as the manual says, with real processes: nobody who asks, signs in or reaches a member meanwhile notices.

Runs with ``make fuzz``; on PostgreSQL too where its programs are there. What a rotation does to rows is in
``tests/fleet/test_key_rotation.py``.
"""

import http.client
import itertools
import json
import os
import re
import ssl
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.utils import timezone

from deploy.bootstrap.home import ROOT
from deploy.supervisor.product import web_command
from simulator.controller_manager import Shape
from simulator.member import SimulatedMember
from tests.support import kubectl, postgres, template
from tests.support.free_ports import free_port
from tests.support.members import eventually
from tests.support.people import PASSWORD, code_at

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(
        not os.environ.get("CONVOY_FUZZ_MINUTES"), reason="a minute of processor time: make fuzz runs it"
    ),
]
SECRETS = 2000
"""Ten batches of a rotation, so that it can be killed amid them."""
PREPARE = f"""
import sys
import django; django.setup()
from django.contrib.auth import get_user_model
from django.utils import timezone
from fleet.models import Grant, SecondFactor
from fleet.services.authorization import access
from fleet.services.clusters import clusters
from jobs.models import Dependent
now = timezone.now()
for name in ("ada", "bob", "eve", "vera"):
    user = get_user_model().objects.create_user(name, password="{PASSWORD}", is_superuser=name == "ada")
    Grant.objects.create(user=user, role=Grant.Role.EDITOR, namespace="vision")
SecondFactor.objects.create(user=user, secret="JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP", confirmed_at=now)
clusters.join("north", sys.stdin.read(), by="ada", now=now)
Dependent.objects.bulk_create(
    Dependent(kind="Secret", namespace="vision", name=f"s{{n}}", created_at=now, resource_version=1, manifest={{
        "apiVersion": "v1", "kind": "Secret", "data": {{"n": "eA=="}},
        "metadata": {{"name": f"s{{n}}", "namespace": "vision"}}}})
    for n in range({SECRETS}))
print(access.mint(get_user_model().objects.get(username="ada"), "t", life=None, now=now)[1])
"""
NODES = "/apis/cluster.karmada.io/v1alpha1/clusters/north/proxy/api/v1/nodes"
OF_NAMESPACE = "/api/v1/namespaces/vision/secrets"
TRUST = ssl._create_unverified_context()  # noqa: S323 - this machine's own certificate
CELERY = (sys.executable, "-m", "celery", "-A", "deploy.config.celery")
WORKER = (*CELERY, "worker", "--pool=threads", "--concurrency=4", "--without-gossip", "--without-mingle")


class Installation:
    """The processes of one, all with the same keys; and its callers."""

    def __init__(self, env: dict[str, str], token: str) -> None:
        self.port, self.kube_port, self._env, self._token = free_port(), free_port(), env, token

    @contextmanager
    def runs(self, keys: list[str]) -> Iterator[None]:
        env = {**self._env, "CONVOY_ENCRYPTION_KEYS": ",".join(keys)}
        beat = (*CELERY, "beat", "--pidfile=", f"--schedule={env['CONVOY_HOME']}/schedule")
        kube = (sys.executable, "-m", "deploy.config.kube", "--port", str(self.kube_port))
        with ExitStack() as stack:
            for command in (web_command(self.port), kube, WORKER, (*WORKER, "-n", "second@%h"), beat):
                stack.enter_context(_running(command, env))
            eventually(lambda: kubectl.answers(self.port) and kubectl.answers(self.kube_port), 240)
            yield

    def ask(
        self, path: str, method: str = "GET", body: Any = None, *, kube: bool = True, **headers: str
    ) -> tuple[int, Any]:
        line = (
            http.client.HTTPSConnection("127.0.0.1", self.kube_port, timeout=120, context=TRUST)
            if kube
            else http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        )
        with closing(line):
            usual = {"Authorization": f"Bearer {self._token}"} if "Cookie" not in headers else {}
            line.request(method, path, json.dumps(body), {**usual, "Content-Type": "application/json", **headers})
            answer = line.getresponse()
            return answer.status, json.loads(answer.read() or b"null")

    def sign_in(self, username: str, **more: str) -> int:
        body = {"username": username, "password": PASSWORD, **more}
        headers = {"Cookie": f"csrftoken={'x' * 32}", "X-CSRFToken": "x" * 32}
        return self.ask("/api/v1/session/", "POST", body, kube=False, **headers)[0]

    def rotate(self, *, killed_after: int = 10**9) -> str:
        """What the command says; it is killed once it has looked at so many secrets."""
        env = {**self._env, "CONVOY_URL": f"http://127.0.0.1:{self.port}", "CONVOY_TOKEN": self._token}
        command = [sys.executable, "-u", "-m", "frontend.cli.main", "rotate-keys"]
        said = ""
        with subprocess.Popen(
            command, cwd=ROOT, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                said += line
                if (checked := re.match(r"(\d+) secrets checked", line)) and int(checked[1]) > killed_after:
                    process.kill()
                    return said
        assert process.returncode == 0, said
        return said


@contextmanager
def _running(command: tuple[str, ...], env: dict[str, str]) -> Iterator[None]:
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield
            assert process.poll() is None, command
        finally:
            process.kill()


class Callers:
    """Threads that ask again and again, each its own thing; knows how often each had which status."""

    def __init__(self, there: Installation) -> None:
        self.codes, self._end = Counter[tuple[str, int]](), threading.Event()
        numbers, names = itertools.count(), itertools.cycle(["bob", "eve", "ada"])
        secret = {"apiVersion": "v1", "kind": "Secret"}
        self._acts: dict[str, Callable[[], int]] = {
            "reads": lambda: there.ask(f"{OF_NAMESPACE}/s{next(numbers) * 37 % SECRETS}")[0],
            "writes": lambda: there.ask(
                OF_NAMESPACE, "POST", {**secret, "metadata": {"name": f"late-{next(numbers)}"}}
            )[0],
            "asks a member": lambda: there.ask(NODES)[0],
            "signs in": lambda: there.sign_in(next(names)),
        }

    def _again(self, name: str) -> None:
        while not self._end.wait(2.5 if name == "signs in" else 0.02):
            try:
                self.codes[name, self._acts[name]()] += 1
            except OSError:
                self.codes[name, 0] += 1

    @contextmanager
    def meanwhile(self) -> Iterator[None]:
        threads = [threading.Thread(target=self._again, args=(name,)) for name in self._acts]
        for each in threads:
            each.start()
        try:
            yield
        finally:
            self._end.set()
            for each in threads:
                each.join()


@pytest.fixture(params=["sqlite", "postgresql"])
def env(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    if request.param == "sqlite":
        yield template.home_at(tmp_path / "home")
        return
    with postgres.started() as url:
        env = {**template.environment(tmp_path / "home"), "DATABASE_URL": url, "CONVOY_SECRET_KEY": "x" * 50}
        command = [sys.executable, "-m", "django", "migrate", "-v0"]
        keys = {"CONVOY_ENCRYPTION_KEYS": Fernet.generate_key().decode()}
        subprocess.run(command, cwd=ROOT, env={**env, **keys}, check=True)
        yield env


def test_nobody_notices_a_rotation_that_is_killed_and_called_again(env: dict[str, str], tmp_path: Path) -> None:
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    member = SimulatedMember("north", tmp_path / "member", Shape((), {}))
    member.start()
    try:
        prepared = subprocess.run(
            [sys.executable, "-c", PREPARE],
            cwd=ROOT, env={**env, "CONVOY_ENCRYPTION_KEYS": old}, check=True, capture_output=True, text=True,
            input=(tmp_path / "member" / "kubeconfig.yaml").read_text(),
        )  # fmt: skip
        there = Installation(env, prepared.stdout.split()[-1])
        with there.runs([new, old]):
            callers = Callers(there)
            with callers.meanwhile():
                there.rotate(killed_after=SECRETS // 3)
                again = there.rotate()
                eventually(lambda: len({name for name, _ in callers.codes}) == 4, 240)
        kept = re.search(r"(\d+) secrets are encrypted with the first key; (\d+) were encrypted again", again)
        assert kept is not None and 0 < int(kept[2]) < SECRETS < int(kept[1]), again
        assert {code for _, code in callers.codes} == {200, 201}, callers.codes
        with there.runs([new]):
            assert "; 0 were encrypted again" in there.rotate()
            assert there.ask(f"{OF_NAMESPACE}/s{SECRETS - 1}")[1]["data"] == {"n": "eA=="}
            assert there.ask(NODES)[0] == 200 and there.sign_in("bob") == 200
            assert there.sign_in("vera", code=code_at("JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP", timezone.now())) == 200
    finally:
        member.stop()
