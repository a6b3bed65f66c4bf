"""The web and the kube process as the product starts them, and a tenant who is hostile in all ways at once: long lists, bodies
that are dear to read, answers that are not read, requests without an end. Another's small request goes ahead of them.

Runs with ``make fuzz``. Measured is not the time of a clock but the processor time that the server spends in between.
"""

import asyncio
import json
import os
import socket
import ssl
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import pytest

from deploy.bootstrap.home import ROOT
from deploy.supervisor.product import web_command
from tests.attacks.bodies import JSON, YAML
from tests.support import kubectl, template
from tests.support.free_ports import free_port
from tests.support.members import eventually

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(
        not os.environ.get("CONVOY_FUZZ_MINUTES"), reason="half a minute of processor time: make fuzz runs it"
    ),
]
USERS = ("mal", "eve", "bob")
PREPARE = """
import django; django.setup()
from django.contrib.auth import get_user_model
from django.utils import timezone
from fleet.models import Grant
from fleet.services.authorization import access
from jobs.models import Dependent, Job
now = timezone.now()
for name, home in (("mal", "vision"), ("eve", "vision"), ("bob", "speech")):
    user = get_user_model().objects.create_user(name)
    Grant.objects.create(user=user, role=Grant.Role.EDITOR, namespace=home)
    print(access.mint(user, "t", life=None, now=now)[1])
Dependent.objects.bulk_create(
    Dependent(kind="ConfigMap", namespace=home, name=f"map-{n}", created_at=now, resource_version=1, manifest={
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"map-{n}", "namespace": home}, "data": {"a": "x" * 500}})
    for home, number in (("vision", 1500), ("speech", 1)) for n in range(number))
Job.objects.bulk_create(
    Job(namespace=home, name=f"job-{n}", created_at=now, queued_at=now, api_version="kubeflow.org/v1", kind="PyTorchJob",
        manifest={}, roles=[], total={})
    for home, number in (("vision", 1500), ("speech", 1)) for n in range(number))
"""
ASK = """
import json, os, socket, ssl, sys
port, is_secure, pid, number, request = json.loads(sys.argv[1])
trust = ssl.create_default_context()
trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE

def spent_s():
    user, system = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

def one():
    before = spent_s()
    with socket.create_connection(("127.0.0.1", port)) as line:
        if is_secure:
            line = trust.wrap_socket(line)
        line.sendall(request.encode())
        assert b" 200 " in line.recv(100)
        return round(spent_s() - before, 2)

print(json.dumps([one() for _ in range(number)]))
"""
LARGE = b"spec: [" + b"a, " * 300_000 + b"b]"
FLOOD = 24
"""Connections that ask again as soon as they are answered: three times what one user has answered at once."""
UNREAD = 10
"""Answers that another hostile user never reads: more than that user may have."""
ASKED = 6
"""Requests of the one who means well."""


@dataclass(frozen=True)
class Door:
    port: int
    trust: ssl.SSLContext | None
    tokens: dict[str, str]
    small: str
    """What the one who means well asks for."""
    dear: list[tuple[str, str, str, bytes]]
    """Requests that are dear to answer: method, path, content type and body."""
    long: list[str]
    """Answers that are longer than what a connection holds."""
    pid: int

    def spent_s(self) -> float:
        """Processor time of the server so far, which does not depend on what else a machine does."""
        user, system = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def request(self, user: str, path: str, method: str = "GET", kind: str = "", body: bytes = b"") -> bytes:
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {self.tokens[user]}"]
        lines += [f"Content-Type: {kind}"] if kind else []
        return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body


def web_door(port: int, pid: int, tokens: dict[str, str]) -> Door:
    what_if = [json.dumps({"add_job": body.decode("latin-1")}).encode() for body in (*YAML.values(), LARGE)]
    lists = ["/api/v1/jobs/?page_size=500", "/api/v1/jobs/groups/?by=state", "/api/v1/jobs/export/"]
    dear = [("POST", "/api/v1/whatif/", "application/json", body) for body in (*what_if, *JSON.values())]
    dear += [("GET", path, "", b"") for path in lists] * 8
    return Door(port, None, tokens, "/api/v1/jobs/?page_size=1", dear, ["/api/v1/jobs/export/"], pid)


def kube_door(port: int, pid: int, tokens: dict[str, str]) -> Door:
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    review, maps = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "/api/v1/namespaces/{}/configmaps"
    long = maps.format("vision")
    dear = [("POST", review, "application/yaml", body) for body in (*YAML.values(), *JSON.values(), LARGE)]
    dear += [("GET", path, "", b"") for path in (long, f"{long}?labelSelector=a!=b")] * 12
    return Door(port, trust, tokens, maps.format("speech") + "/map-0", dear, [long, f"{long}?watch=true"], pid)


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Door]]:
    home = tmp_path_factory.mktemp("flooded")
    env = template.home_at(home)
    done = subprocess.run(
        [sys.executable, "-c", PREPARE], cwd=ROOT, env=env, check=True, capture_output=True, text=True
    )
    tokens = dict(zip(USERS, done.stdout.split()[-len(USERS) :], strict=True))
    port, kube_port = free_port(), free_port()
    kube_command = [sys.executable, "-m", "deploy.config.kube", "--port", str(kube_port)]
    with (
        subprocess.Popen(web_command(port), cwd=ROOT, env=env) as web,
        subprocess.Popen(kube_command, cwd=ROOT, env=env) as kube,
    ):
        try:
            eventually(lambda: kubectl.answers(port) and kubectl.answers(kube_port), 120)
            yield {"web": web_door(port, web.pid, tokens), "kube": kube_door(kube_port, kube.pid, tokens)}
            assert web.poll() is None and kube.poll() is None
        finally:
            web.terminate()
            kube.terminate()


class Line:
    """One connection, on which requests follow each other."""

    def __init__(self, door: Door) -> None:
        self._door = door

    async def open(self) -> None:
        end = socket.socket()
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)  # what is not read waits at the server
        end.setblocking(False)
        await asyncio.get_running_loop().sock_connect(end, ("127.0.0.1", self._door.port))
        name = "localhost" if self._door.trust else None
        self._reader, self._writer = await asyncio.open_connection(sock=end, ssl=self._door.trust, server_hostname=name)

    def send(self, sent: bytes) -> None:
        self._writer.write(sent)

    async def ask(self, sent: bytes) -> int:
        """The code of the answer, when it has been read to its end."""
        self.send(sent)
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines[1:] if line)
        if "content-length" in headers:
            await self._reader.readexactly(int(headers["content-length"]))
        else:
            while size := int(await self._reader.readuntil(b"\r\n"), 16):
                await self._reader.readexactly(size + 2)
            await self._reader.readexactly(2)
        return int(lines[0].split()[1])

    def close(self) -> None:
        self._writer.close()


class Flood:
    """Knows for how much of the server's processor time each of its requests waited."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self.waited, self.codes = list[float](), Counter[int]()
        self._requests = cycle(
            [door.request("mal", path, method, kind, body) for method, path, kind, body in door.dear]
        )

    async def again(self) -> None:
        """Dear requests, one after the other."""
        line = Line(self._door)
        await line.open()
        while True:
            before = self._door.spent_s()
            self.codes[await line.ask(next(self._requests))] += 1
            self.waited.append(self._door.spent_s() - before)

    async def unread(self, number: int) -> None:
        line = Line(self._door)
        await line.open()
        line.send(self._door.request("eve", self._door.long[number % len(self._door.long)]))
        await asyncio.Event().wait()

    async def unfinished(self) -> None:
        """A head, and bytes of a body that come one by one."""
        line = Line(self._door)
        await line.open()
        line.send(self._door.request("eve", self._door.small, "POST").replace(b"Length: 0", b"Length: 1000"))
        while True:
            line.send(b"x")
            await asyncio.sleep(1)


async def asked(door: Door) -> list[float]:
    """For how much of the server's processor time each request of the user who means well waited, with its handshake.

    Asked by a process of its own, which has nothing else to do when an answer comes.
    """
    request = door.request("bob", door.small).decode()
    about = json.dumps([door.port, bool(door.trust), door.pid, ASKED, request])
    asking = await asyncio.create_subprocess_exec(sys.executable, "-c", ASK, about, stdout=subprocess.PIPE)
    told, _ = await asking.communicate()
    assert asking.returncode == 0
    waited: list[float] = json.loads(told)
    return waited


async def flooded(door: Door) -> tuple[Flood, list[float]]:
    flood = Flood(door)
    tasks = [asyncio.ensure_future(flood.unread(number)) for number in range(UNREAD)]
    tasks += [asyncio.ensure_future(flood.unfinished()) for _ in range(20)]
    tasks += [asyncio.ensure_future(flood.again()) for _ in range(FLOOD)]
    try:
        while len(flood.waited) < 2 * FLOOD:
            await asyncio.wait(tasks, timeout=0.05, return_when=asyncio.FIRST_EXCEPTION)
            assert not [task.exception() for task in tasks if task.done()]
        return flood, await asked(door)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("name", ["web", "kube"])
def test_a_small_request_is_not_behind_the_flood_of_a_hostile_tenant(doors: dict[str, Door], name: str) -> None:
    async def story() -> tuple[Flood, list[float]]:
        async with asyncio.timeout(600):
            await asked(doors[name])  # from now on the server knows whose token it is
            return await flooded(doors[name])

    flood, waited = asyncio.run(story())
    own = flood.waited[FLOOD:]  # those before did not find all others waiting
    assert not [code for code in flood.codes if code >= 500], flood.codes
    assert statistics.median(waited) * 1.5 < statistics.median(own), (waited, own)
    assert max(waited) < 1, waited
