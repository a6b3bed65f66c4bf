"""One child process over its whole life: started when what it needs is ready, watched, restarted, and stopped for good.

A child is alive when its process exists, and ready when its probe says so. Each runs in its own process group, so that
stopping it takes its own children along; and each is tethered, so that it dies with the supervisor. Whether it is wedged is
judged by its own signs of life only (a heartbeat file, or an answer on its own port), never through another process.
"""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from deploy.supervisor import forked, processes
from deploy.supervisor.backoff import Backoff
from deploy.supervisor.forked import Forked
from deploy.supervisor.liveness import STALLED_S, Effort, Liveness
from deploy.supervisor.logfile import LogFile
from deploy.supervisor.probes import Probe

DIE_WITH_PARENT = Path(__file__).with_name("die_with_parent.py")
STARTING_EVERY_S = 0.15
READY_EVERY_S = 5.0
QUIET_S = 30.0
"""Silent this long, it is shown as not ready; it may still come back."""
LATE_LOOK_S = 15.0
"""The longest silence that one look may add: a look is late when the supervisor or the whole machine was frozen."""
LONGEST_LINE = 256 * 1024


@dataclass(frozen=True, slots=True)
class Spec:
    """A command to run, and the probe that shows whether it works."""

    name: str
    argv: tuple[str, ...]
    ready: Probe
    env: Mapping[str, str] = field(default_factory=dict)
    once: bool = False
    """Runs to its end; ready means it ended well."""
    after: tuple[str, ...] = ()
    """Children that must be ready first."""
    patience_s: float = 10.0
    """Between asking it to stop and making it."""
    alive: Probe | None = None
    """Its sign of life; without one it is never taken for wedged."""
    heartbeat: Path | None = None
    """The file it touches while its main loop turns: a sign of life, and from the first time on, readiness."""
    log_is_life: bool = False
    """Each line it logs is a sign of life as well: a loop that waits for a broker logs each try."""
    stalled_s: float = STALLED_S
    """Silent and idle this long, it is restarted although its process exists."""
    forked_by: Path | None = None
    """The socket of the process that has imported what it needs; where that does not answer, it is started by itself."""
    death_signal: signal.Signals = signal.SIGKILL
    """What it gets when the supervisor dies. One that has to tidy up wants TERM."""


Process = asyncio.subprocess.Process | Forked


class Child:
    """A spec, running."""

    def __init__(self, spec: Spec, log: LogFile, changed: Callable[[], None]) -> None:
        self.spec = spec
        self.log = log
        self.changed = changed
        self.state = "waiting"
        self.pid: int | None = None
        self.starts = 0
        self.began = 0.0
        self.backoff = Backoff()
        self.ready = asyncio.Event()
        self.stopping = asyncio.Event()
        self.was_ready = False
        self.lines = 0

    async def run(self) -> None:
        """Until it is stopped, or for a one-shot until it has succeeded."""
        while not self.stopping.is_set():
            process = await self._start()
            code = await self._live(process) if process else 127
            lived = time.monotonic() - self.began
            if self.stopping.is_set():
                break
            if self.spec.once and code == 0:
                self._set("done")
                self.ready.set()
                return
            self.backoff = self.backoff.after(lived)
            self._note(f"ended with {code} after {lived:.1f} s; starting again in {self.backoff.wait_s:.2f} s")
            self._set("backoff")
            await self._pause(self.backoff.wait_s)
        self._set("stopped")

    def stop(self) -> None:
        self.stopping.set()

    async def _start(self) -> Process | None:
        self.starts += 1
        self.began = time.monotonic()
        self.was_ready = False
        if self.spec.heartbeat:
            self.spec.heartbeat.unlink(missing_ok=True)
        process = await self._fork() or await self._execute()
        if process is not None:
            self.pid = process.pid
            self._set("starting")
        return process

    async def _fork(self) -> Process | None:
        if self.spec.forked_by is None or not forked.IS_POSSIBLE:
            return None
        env = {**os.environ, **self.spec.env}
        name, argv, door = self.spec.name, self.spec.argv[1:], self.spec.forked_by
        try:
            return await forked.fork(door, name, argv, env, self.spec.death_signal, LONGEST_LINE)
        except (OSError, ValueError) as error:
            self._note(f"is started by itself: {error}")
            return None

    async def _execute(self) -> Process | None:
        die_with_parent = (
            sys.executable,
            "-I",
            "-S",
            str(DIE_WITH_PARENT),
            str(int(self.spec.death_signal)),
            str(os.getpid()),
        )
        try:
            return await asyncio.create_subprocess_exec(
                *die_with_parent,
                *self.spec.argv,
                env={**os.environ, **self.spec.env},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                limit=LONGEST_LINE,
                process_group=0,
            )
        except OSError as error:
            self._note(f"cannot start: {error}")
            return None

    async def _live(self, process: Process) -> int:
        """Runs it from start to end, and leaves no process of its group behind."""
        helpers = [asyncio.create_task(self._copy(process)), asyncio.create_task(self._watch(process))]
        ended = asyncio.create_task(process.wait())
        asked = asyncio.create_task(self.stopping.wait())
        await asyncio.wait({ended, asked}, return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        if not ended.done():
            self._set("stopping")
            _signal_group(process.pid, signal.SIGTERM)
            await asyncio.wait({ended}, timeout=self.spec.patience_s)
        _signal_group(process.pid, signal.SIGKILL)
        code = await ended
        await asyncio.wait(helpers[:1], timeout=1)
        for helper in helpers:
            helper.cancel()
        self.ready.clear()
        self.pid = None
        return code

    async def _watch(self, process: Process) -> None:
        """Follow its readiness; end it when it is wedged."""
        if self.spec.once:
            return
        liveness, signs, looked = Liveness(), self._signs(), time.monotonic()
        while True:
            is_ready = liveness.silent_s < QUIET_S and await self._is_ready()
            self._show(is_ready)
            answers = await self._answers(is_ready)
            every = READY_EVERY_S if self.ready.is_set() else STARTING_EVERY_S
            effort = processes.effort(process.pid) if self._shows_life else Effort()
            now = time.monotonic()
            if answers or self._signs() != signs:
                liveness, signs = liveness.heard(effort), self._signs()
            elif self._shows_life:
                liveness = liveness.silent(now - looked, LATE_LOOK_S)
                if fault := liveness.fault(effort, self.spec.stalled_s):
                    self._note(f"{fault}: ending it")
                    _signal_group(process.pid, signal.SIGKILL)
                    return
            looked = now
            await asyncio.sleep(every)

    async def _answers(self, is_ready: bool) -> bool:
        """Its sign of life; where that is the answer to the probe of its readiness, it is not asked a second time."""
        if self.spec.alive is None:
            return False
        if is_ready and self.spec.alive is self.spec.ready:
            return True
        return await self.spec.alive()

    @property
    def _shows_life(self) -> bool:
        """Whether its silence means anything."""
        return self.spec.alive is not None or self.spec.heartbeat is not None

    async def _is_ready(self) -> bool:
        if self.spec.heartbeat and not self.spec.heartbeat.exists():
            return False
        return await self.spec.ready()

    def _show(self, is_ready: bool) -> None:
        if is_ready and not self.ready.is_set():
            self.was_ready = True
            self.ready.set()
            self._set("ready")
        elif not is_ready and self.ready.is_set():
            self.ready.clear()
            self._set("unready")

    def _signs(self) -> tuple[int, int]:
        """Changes with each sign of life that the process gives by itself. While it starts, its log is one."""
        stamp = 0
        if self.spec.heartbeat:
            with contextlib.suppress(OSError):
                stamp = self.spec.heartbeat.stat().st_mtime_ns
        return stamp, self.lines if self.spec.log_is_life or not self.was_ready else 0

    async def _copy(self, process: Process) -> None:
        assert process.stdout is not None  # noqa: S101
        while True:
            try:
                line = await process.stdout.readline()
            except ValueError:
                continue
            if not line:
                return
            self.lines += 1
            self.log.write(line)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.stopping.wait(), seconds)

    def _note(self, text: str) -> None:
        self.log.write(f"[supervisor] {self.spec.name} {text}\n".encode())

    def _set(self, state: str) -> None:
        self.state = state
        self.changed()


def _signal_group(group: int, which: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, which)
