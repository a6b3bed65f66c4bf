"""All children together: their order, the file that publishes their states, and their shutdown."""

import asyncio
import contextlib
import json
import os
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from deploy.supervisor import processes
from deploy.supervisor.child import Child, Spec
from deploy.supervisor.logfile import LogFile


class Supervisor:
    """Runs the specs until it is stopped; ``facts`` are published next to the children's states."""

    def __init__(self, specs: Sequence[Spec], logs: Path, state_file: Path, facts: Mapping[str, str | int]) -> None:
        self.children = {spec.name: Child(spec, LogFile(logs / f"{spec.name}.log"), self._publish) for spec in specs}
        self.state_file = state_file
        self.facts = facts
        self.stopping = asyncio.Event()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for which in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(which, self.stopping.set)
        self._publish()
        tasks = [asyncio.create_task(self._run_in_turn(child)) for child in self.children.values()]
        await self.stopping.wait()
        for child in self.children.values():
            child.stop()
        await asyncio.gather(*tasks)
        self.state_file.unlink(missing_ok=True)

    async def _run_in_turn(self, child: Child) -> None:
        stopped = asyncio.create_task(self.stopping.wait())
        for name in child.spec.after:
            turn = asyncio.create_task(self.children[name].ready.wait())
            await asyncio.wait({turn, stopped}, return_when=asyncio.FIRST_COMPLETED)
            turn.cancel()
        stopped.cancel()
        if not self.stopping.is_set():
            await child.run()

    def _publish(self) -> None:
        state = {
            "pid": os.getpid(),
            "born": processes.born(os.getpid()),
            "at": time.time(),
            **self.facts,
            "children": {name: describe(child) for name, child in self.children.items()},
        }
        draft = self.state_file.with_suffix(".draft")
        with contextlib.suppress(OSError):
            draft.write_text(json.dumps(state))
            draft.replace(self.state_file)


def describe(child: Child) -> dict[str, str | int | float | None]:
    return {
        "state": child.state,
        "pid": child.pid,
        "born": processes.born(child.pid) if child.pid else None,
        "starts": child.starts,
        "began": time.time() - (time.monotonic() - child.began) if child.starts else None,
    }
