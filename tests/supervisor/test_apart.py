"""Reports are apart from notices and the lease: neither their number nor what breaks in them holds those up."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fleet.kube.resources import PYTORCH_JOBS
from fleet.member.client import Access
from jobs.runtime import progress
from supervisor import reports, running
from supervisor.reports import Reports, digest
from supervisor.running import Door
from supervisor.store import Store
from tests.supervisor.reporting import Member, reporting_job, steps
from tests.supervisor.world import World

NOWHERE = Access("https://127.0.0.1:1")


class Broken:
    """A status server that ends by what nothing expects."""

    runs = 0
    enough: asyncio.Event
    taken: Reports

    def __init__(self, taken: Reports) -> None:
        Broken.taken = taken

    async def run(self, folder: Path, port: int) -> None:
        Broken.runs += 1
        if Broken.runs > 2:
            Broken.enough.set()
        raise RuntimeError("not an OSError")


def test_what_breaks_in_reports_ends_nothing_else_and_they_have_threads_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    acting: list[Any] = []
    monkeypatch.setattr(running, "StatusServer", Broken)
    monkeypatch.setattr(running, "RENEWAL_S", 0.01)
    monkeypatch.setattr(running.Lease, "release", lambda lease: asyncio.sleep(0))
    work = running._work
    monkeypatch.setattr(
        running, "_work", lambda supervisor, lease: acting.append(supervisor) or work(supervisor, lease)
    )

    async def story() -> None:
        Broken.runs, Broken.enough, stop = 0, asyncio.Event(), asyncio.Event()
        ran = asyncio.create_task(running.run(NOWHERE, "a", {}, stop, Door(tmp_path, 0)))
        async with asyncio.timeout(60):
            await Broken.enough.wait()
        assert not ran.done()
        assert Broken.taken._member._threads is not acting[0].member._threads
        stop.set()
        await ran

    asyncio.run(story())


def test_what_has_waited_leaves_room_for_what_comes(monkeypatch: pytest.MonkeyPatch):
    """A hundred writes that do not end hold up no look at another job."""

    async def story() -> None:
        world, now = World(), [0.0]
        never, writing = asyncio.Event(), [0]

        class Slow(Member):
            async def patch(self, *about: Any) -> Any:
                if "waiting" in about[2]:
                    writing[0] += 1
                    await never.wait()
                return await super().patch(*about)

        reporting_job(world)
        taken = Reports(Slow(world), Store(), lambda: now[0], lambda: now[0])  # type: ignore[arg-type]
        for n in range(100):
            key = PYTORCH_JOBS, "default", f"waiting-{n}"
            taken._jobs[key] = reports.Job(f"u{n}", digest("t"), progress=progress.Progress(0.0), is_pending=True)
        now[0] = reports.INTERVAL_S
        flushing = asyncio.create_task(taken.flush())
        await asyncio.sleep(0)
        assert (await taken.take((PYTORCH_JOBS, "default", "bert"), "secret", steps(1), "10.0.0.1")).status == 200
        assert writing == [reports.WAITING_WRITES] and reports.WAITING_WRITES < reports.THREADS
        flushing.cancel()

    asyncio.run(story())
