"""Runs many schedules, some at once, each in a process forked from one interpreter; reports them as a table and as JSON."""

import argparse
import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from tests.faults.engine import schedules, summary
from tests.faults.engine.servers import PROGRAMS
from tests.faults.engine.verdict import Verdict
from tests.support import postgres

MOST_S = 420.0
"""A schedule that takes longer hangs."""


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.engine", description=__doc__)
    parser.add_argument("--seeds", type=int, default=40, help="how many schedules")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="this one alone, again")
    parser.add_argument("--list", help="these alone, with commas between")
    parser.add_argument("--database", choices=("postgres", "sqlite"), default="postgres")
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--within-s", type=float, default=0.0, help="begin no schedule after so many seconds")
    parser.add_argument("--report", type=Path, help="append a line of JSON for each schedule; seeds in it are left out")
    parser.add_argument("--keep", type=Path, default=Path(".convoy/faults"), help="where logs of failures are kept")
    options = parser.parse_args(argv)
    seeds = list(range(options.first, options.first + options.seeds))
    if options.seed is not None:
        seeds = [options.seed]
    if options.list:
        seeds = [int(seed) for seed in options.list.split(",")]
    if options.report:
        seeds = summary.left_to_run(seeds, summary.read(options.report), options.database)
    engine = Engine(options.keep, server=options.database == "postgres", report=options.report)
    return 0 if engine.run(seeds, options.at_once, options.within_s) else 1


class Engine:
    def __init__(self, keep: Path, *, server: bool, report: Path | None = None) -> None:
        self._server, self._keep, self._report = server, keep.resolve(), report
        self._root = Path(tempfile.mkdtemp(prefix="convoy-faults-"))
        self._root.chmod(0o755)
        os.environ["FAULTS_HOME"] = str(self._root / "keys")
        os.environ["DJANGO_SETTINGS_MODULE"] = "tests.faults.engine.settings"
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        if server:
            os.environ["DATABASE_URL"] = "postgresql://convoy@127.0.0.1:1/postgres"
            os.environ[PROGRAMS] = str(postgres.programs_for(self._root / "server"))
        else:
            os.environ.pop("DATABASE_URL", None)
        self.verdicts: list[dict[str, object]] = []

    def run(self, seeds: Sequence[int], at_once: int, within_s: float = 0.0) -> bool:
        """Whether all schedules passed."""
        from tests.faults.engine import nursery, template

        try:
            nursery.prepare()
            template.make(self._root / "template", server=self._server)
            began = time.monotonic()
            queue = iter(seeds)
            if within_s:
                queue = _until(queue, began + within_s)
            self._run_all(queue, at_once)
        finally:
            shutil.rmtree(self._root, ignore_errors=True)
        self._sum_up(time.monotonic() - began)
        return not any(verdict["faults"] for verdict in self.verdicts)

    def _run_all(self, seeds: Iterator[int], at_once: int) -> None:
        running: dict[int, tuple[int, float]] = {}
        seed: int | None = 0
        while running or seed is not None:
            while len(running) < at_once and (seed := next(seeds, None)) is not None:
                running[self._fork(seed)] = (seed, time.monotonic())
            for pid, (of, began) in list(running.items()):
                if os.waitpid(pid, os.WNOHANG)[0]:
                    del running[pid]
                    self._collect(of)
                elif time.monotonic() - began > MOST_S:
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)

    def _fork(self, seed: int) -> int:
        parent = os.getpid()
        pid = os.fork()
        if pid:
            return pid
        from tests.faults.engine import template
        from tests.faults.engine.dying import die_with
        from tests.faults.engine.world import World

        home, world = self._root / str(seed), None
        try:
            die_with(parent)
            template.copy(self._root / "template", home, server=self._server)
            output = os.open(home / "engine.log", os.O_WRONLY | os.O_CREAT)
            os.dup2(output, 1)
            os.dup2(output, 2)
            world = World(schedules.schedule(seed, server=self._server), home, server=self._server)
            world.run().write(home / "verdict.json")
        except BaseException:  # noqa: BLE001 - it is reported by the parent
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            if world is not None:
                with contextlib.suppress(Exception):
                    world._stop()
            os._exit(0)

    def _collect(self, seed: int) -> None:
        home = self._root / str(seed)
        file = home / "verdict.json"
        if file.exists():
            verdict = Verdict.read(file)
        else:
            lines = (home / "engine.log").read_text().splitlines() if (home / "engine.log").exists() else []
            text = str(schedules.schedule(seed, server=self._server))
            verdict = Verdict(seed, text, [f"the engine itself failed: {' | '.join(lines[-3:])}"])
        self.verdicts.append(asdict(verdict))
        if self._report is not None:
            with self._report.open("a") as out:
                out.write(json.dumps({**asdict(verdict), "database": self._kind}) + "\n")
        self._show(verdict)
        if verdict.faults:
            self._keep_logs(home, seed)
        shutil.rmtree(home, ignore_errors=True)

    @property
    def _kind(self) -> str:
        return "postgres" if self._server else "sqlite"

    def _show(self, verdict: Verdict) -> None:
        reached = "" if all(verdict.reached) else ", step not reached"
        reached += ", busy machine" if verdict.starved else ""
        word = "FAILED" if verdict.faults else "ok"
        print(
            f"{verdict.seed:>6}  {word:<6} {verdict.took_s:5.1f} s  {verdict.schedule} -> {', '.join(verdict.struck)}{reached}",
            flush=True,
        )
        for fault in verdict.faults[:12]:
            print(f"        {fault[:300]}")
        if verdict.faults:
            print(
                f"        again: python -m tests.faults.engine --database {self._kind} --seed {verdict.seed}",
                flush=True,
            )

    def _keep_logs(self, home: Path, seed: int) -> None:
        kept = self._keep / f"{self._kind}-{seed}"
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        for log in (*home.glob("*.log"), *home.glob("*.json"), *(home / "logs").glob("*.log")):
            shutil.copy(log, kept / log.name)

    def _sum_up(self, took_s: float) -> None:
        failed = [verdict["seed"] for verdict in self.verdicts if verdict["faults"]]
        print(f"{len(self.verdicts)} schedules on {self._kind} in {took_s:.0f} s, {len(failed)} failed: {failed}")


def _until(seeds: Iterator[int], deadline: float) -> Iterator[int]:
    for seed in seeds:
        if time.monotonic() > deadline:
            return
        yield seed
