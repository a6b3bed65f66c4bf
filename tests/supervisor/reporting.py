"""A status endpoint on a loopback port, with TLS, in front of a member in memory; and a client that speaks to it."""

import asyncio
import contextlib
import json
import ssl
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fleet.kube import pki
from fleet.member.errors import MemberAway
from jobs.runtime import progress
from supervisor.reports import Reports, digest
from supervisor.status_server import StatusServer
from supervisor.store import Store
from tests.supervisor.world import PlayedMember, World

PATH = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/{}/status"


@dataclass
class Member(PlayedMember):
    """Counts what is written."""

    world: World
    gets: int = 0
    patches: list[dict[str, Any]] = field(default_factory=list)
    is_away: bool = False
    """It answers no write."""
    answers_pods: asyncio.Event | None = None
    """It answers writes of pods once this is set."""

    async def get(self, *about: Any) -> Any:
        self.gets += 1
        return await super().get(*about)

    async def annotate_pod(self, *about: Any, **more: Any) -> Any:
        if self.answers_pods is not None:
            await self.answers_pods.wait()
        return await super().annotate_pod(*about, **more)

    async def patch(self, *about: Any) -> Any:
        if self.is_away:
            raise MemberAway("no answer")
        self.patches.append(about[-1])
        return await super().patch(*about)


@dataclass
class Endpoint:
    world: World
    member: Member
    store: Store
    port: int
    context: ssl.SSLContext
    ahead_s: float = 0.0
    """How far its clocks are ahead of ours."""

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead_s

    def progress(self, name: str = "bert") -> progress.Progress | None:
        meta = self.world.jobs[name]["metadata"]
        return progress.read((meta.get("annotations") or {}).get(progress.PROGRESS), meta["uid"])

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port, ssl=self.context, server_hostname="localhost")

    async def post(self, body: bytes, *, token: str = "secret", name: str = "bert", path: str = "") -> tuple[int, Any]:
        """On a connection of its own, as urllib does."""
        reader, writer = await self.connect()
        writer.write(request(body, token=token, path=path or PATH.format(name)))
        answered = await answer(reader)
        writer.close()
        return answered


def request(body: bytes, *, token: str = "secret", path: str = PATH.format("bert"), **headers: str) -> bytes:
    fields = {"Host": "localhost", "Authorization": f"Bearer {token}", "Content-Length": str(len(body)), **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + body


async def answer(reader: asyncio.StreamReader) -> tuple[int, Any]:
    async with asyncio.timeout(60):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.lower().split("content-length: ")[1].split("\r\n")[0])
        return int(head.split(" ")[1]), json.loads(await reader.readexactly(length))


def steps(step: int, total: int = 3000, **metrics: object) -> bytes:
    named = {"current_step": step, "total_steps": total, **metrics}
    listed = [{"name": name, "value": str(value)} for name, value in named.items()]
    return json.dumps({"trainerStatus": {"progressPercentage": 100 * step // total, "metrics": listed}}).encode()


@contextlib.asynccontextmanager
async def endpoint(home: Path, world: World) -> AsyncIterator[Endpoint]:
    made = pki.ensure(home / "tls", datetime.now(UTC))
    for name, file in (("tls.crt", made.certificate), ("tls.key", made.key)):
        (home / "tls" / name).write_bytes(file.read_bytes())
    member, store = Member(world), Store()
    context = ssl.create_default_context(cafile=str(made.authority))
    served = Endpoint(world, member, store, 0, context)
    reports = Reports(member, store, time.time, served.monotonic)  # type: ignore[arg-type]
    ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    server = StatusServer(reports, served.monotonic)
    task = asyncio.create_task(server.run(home / "tls", 0, ready.set_result))
    try:
        async with asyncio.timeout(60):
            served.port = await ready
        yield served
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def reporting_job(world: World, token: str = "secret") -> None:
    job = world.job(workers=2, least=1)
    job["metadata"]["annotations"] = {progress.TOKEN_DIGEST: digest(token)}
