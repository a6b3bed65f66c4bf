"""One supervisor from its start to its end: watches, the lease, and the loop."""

import asyncio
import random
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from structlog import get_logger

from fleet.kube.resources import NODES, PODS
from fleet.member.client import Access, MemberClient, Object
from fleet.member.errors import MemberError
from fleet.member.streaming.client import StreamClient
from fleet.member.watching import Reflector
from supervisor import kubeai, reports
from supervisor.core import facts, signals
from supervisor.core.facts import PodFacts
from supervisor.core.signals import Signal
from supervisor.lease import RENEWAL_S, Lease
from supervisor.member import THREADS, Member
from supervisor.reports import Reports
from supervisor.status_server import StatusServer
from supervisor.store import Store
from supervisor.supervisor import Supervisor

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Door:
    """Where reports are taken: with the certificate in ``folder``, once it is there."""

    folder: Path
    port: int


async def run(
    access: Access, identity: str, notice_s: Mapping[str, float], stop: asyncio.Event, door: Door | None = None
) -> None:
    """Works until ``stop``, and lets go of the lease then. Nothing under way is waited for: the next process takes it up.

    Reports have threads of their own: however many wait to be written, notices and the lease do not wait behind them.
    """
    member, stream = Member(MemberClient(access, pool=THREADS)), StreamClient(access)
    of_reports = Member(MemberClient(access, pool=reports.THREADS), reports.THREADS)
    store, lease = Store(), Lease(member, identity)
    reflectors = [
        Reflector(stream, PODS, store.deliver, random.Random(), read=_pod),  # noqa: S311 - only spreads pauses
        Reflector(stream, NODES, store.deliver, random.Random(), read=_node),  # noqa: S311
    ]
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(reflector.run()) for reflector in reflectors]
        running.append(tasks.create_task(_keep(lease)))
        if door is not None:
            running.append(tasks.create_task(_take_reports(StatusServer(Reports(of_reports, store)), door)))
        running.append(tasks.create_task(_work(Supervisor(member, store, kubeai.notify, notice_s=notice_s), lease)))
        await stop.wait()
        for task in running:
            task.cancel()
    await lease.release()
    stream.close()
    member.close()
    of_reports.close()


def _pod(pod: Object) -> PodFacts:
    return facts.read(pod)


def _node(node: Object) -> Signal | None:
    return signals.of_node(node)


async def _keep(lease: Lease) -> None:
    held = False
    while True:
        if held != (held := await lease.renew()):
            log.info("acting" if held else "waiting: another supervisor acts", identity=lease.identity)
        await asyncio.sleep(RENEWAL_S if held else RENEWAL_S / 5)


async def _take_reports(server: StatusServer, door: Door) -> None:
    """Notices go on whatever becomes of reports."""
    while True:
        try:
            await server.run(door.folder, door.port)
        except Exception as e:  # noqa: BLE001 - it would end the group of tasks, and with it notices and the lease
            log.warning("reports are not taken", port=door.port, error=repr(e))
        await asyncio.sleep(RENEWAL_S)


async def _work(supervisor: Supervisor, lease: Lease) -> None:
    """Acts while the lease is held. What another process did before is taken up first."""
    while True:
        while not (lease.is_held and supervisor.store.synced):
            await asyncio.sleep(0.05)
        with suppress(MemberError):
            await supervisor.recover()
            supervisor.store.changed |= set(supervisor.store.jobs())
            while lease.is_held:
                pause = supervisor.tick()
                await supervisor.wait(pause)
        await asyncio.sleep(1)
