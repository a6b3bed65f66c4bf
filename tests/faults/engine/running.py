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
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from deploy.bootstrap.home import ROOT
from tests.faults.engine import effects, mutations, schedules, summary
from tests.faults.engine.servers import PROGRAMS
from tests.faults.engine.verdict import Verdict
from tests.support import postgres

MOST_S = 420.0
"""A schedule that takes longer hangs."""
_TRIES = 3


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.engine", description=__doc__)
    parser.add_argument("--seeds", type=int, default=40, help="how many schedules")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="this one alone, again")
    parser.add_argument("--list", help="these alone, with commas between")
    parser.add_argument("--database", choices=("postgres", "sqlite"), default="postgres")
    parser.add_argument("--mutate", choices=mutations.MUTATIONS, help="with this guard taken out of the product")
    parser.add_argument("--slow", type=float, default=1.0, help="all times so many times as long, on a busy machine")
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--within-s", type=float, default=0.0, help="begin no schedule after so many seconds")
    parser.add_argument("--report", type=Path, help="append a line of JSON for each schedule; seeds in it are left out")
    parser.add_argument("--keep", type=Path, default=Path(".convoy/faults"), help="where logs of failures are kept")
    options = parser.parse_args(argv)
    if Path(sys.prefix).resolve() != (ROOT / ".venv").resolve():
        # manage.py would start the checkout's own interpreter instead, which knows nothing of the schedule's world.
        parser.error(f"run it by {ROOT / '.venv/bin/python'}: this is the interpreter of {sys.prefix}")
    seeds = list(range(options.first, options.first + options.seeds))
    if options.seed is not None:
        seeds = [options.seed]
    if options.list:
        seeds = [int(seed) for seed in options.list.split(",")]
    if options.report:
        seeds = summary.left_to_run(seeds, summary.read(options.report), options.database)
    os.environ["FAULTS_SLOW"] = str(options.slow)
    if options.mutate:
        mutations.install(options.mutate)
    engine = Engine(options.keep, server=options.database == "postgres", report=options.report, mutation=options.mutate)
    return 0 if engine.run(seeds, options.at_once, options.within_s) else 1


class Engine:
    def __init__(self, keep: Path, *, server: bool, report: Path | None = None, mutation: str | None = None) -> None:
        self._server, self._keep, self._report, self._mutation = server, keep.resolve(), report, mutation or ""
        self._slow = float(os.environ.get("FAULTS_SLOW", "1"))
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
        self.verdicts: list[dict[str, Any]] = []

    def run(self, seeds: Sequence[int], at_once: int, within_s: float = 0.0) -> bool:
        """Whether the schedules passed: see `passed`."""
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
        return passed(self.verdicts)

    def _run_all(self, seeds: Iterator[int], at_once: int) -> None:
        """What failed on a machine too busy to judge it is run again, `_TRIES` times in all."""
        running: dict[int, tuple[int, float]] = {}
        tries: Counter[int] = Counter()
        again: list[int] = []
        while True:
            while len(running) < at_once and (seed := again.pop() if again else next(seeds, None)) is not None:
                running[self._fork(seed)] = (seed, time.monotonic())
            if not running:
                return
            for pid, (of, began) in list(running.items()):
                if os.waitpid(pid, os.WNOHANG)[0]:
                    del running[pid]
                    tries[of] += 1
                    verdict = self._collect(of)
                    if verdict.starved and verdict.faults and tries[of] < _TRIES:
                        again.append(of)
                elif time.monotonic() - began > MOST_S * self._slow:
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
            world = World(schedules.schedule(seed, server=self._server), home, server=self._server, slow=self._slow)
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

    def _collect(self, seed: int) -> Verdict:
        home = self._root / str(seed)
        file = home / "verdict.json"
        if file.exists():
            verdict = Verdict.read(file)
        else:
            lines = (home / "engine.log").read_text().splitlines() if (home / "engine.log").exists() else []
            text = str(schedules.schedule(seed, server=self._server))
            verdict = Verdict(seed, text, [f"the engine itself failed: {' | '.join(lines[-3:])}"])
        verdict.mutation = self._mutation
        self.verdicts.append(asdict(verdict))
        if self._report is not None:
            with self._report.open("a") as out:
                out.write(json.dumps({**asdict(verdict), "database": self._kind}) + "\n")
        self._show(verdict)
        if verdict.faults:
            self._keep_logs(home, seed)
        shutil.rmtree(home, ignore_errors=True)
        return verdict

    @property
    def _kind(self) -> str:
        return "postgres" if self._server else "sqlite"

    def _show(self, verdict: Verdict) -> None:
        reached = "" if all(verdict.reached) else ", step not reached"
        reached += ", busy machine" if verdict.starved else ""
        word = "FAILED" if verdict.faults else "ok"
        cost = f"{verdict.took_s:5.1f} s, {verdict.processor_s:4.1f} of processors, waited {verdict.waited_s:4.1f}"
        struck = ", ".join(verdict.struck)
        print(f"{verdict.seed:>6}  {word:<6} {cost}  {verdict.schedule} -> {struck}{reached}", flush=True)
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
        failed = [verdict["seed"] for verdict in self.verdicts if verdict["faults"] and not verdict["starved"]]
        open_seeds = sorted(undecided(self.verdicts))
        seeds = len({verdict["seed"] for verdict in self.verdicts})
        words = f"{seeds} schedules on {self._kind} in {took_s:.0f} s, {len(failed)} failed: {failed}"
        print(words + (f"; not decided, because the machine was too busy: {open_seeds}" if open_seeds else ""))
        print(effects.table(self.verdicts))
        if without := effects.missing(self.verdicts):
            print(f"FAILED: never carried out, so nothing was struck while it was: {', '.join(without)}")


def undecided(verdicts: Sequence[Mapping[str, Any]]) -> set[int]:
    """Seeds that failed on a machine too busy to judge them, each time they were run."""
    decided = {verdict["seed"] for verdict in verdicts if not (verdict["starved"] and verdict["faults"])}
    return {verdict["seed"] for verdict in verdicts} - decided


def passed(verdicts: Sequence[Mapping[str, Any]]) -> bool:
    """Whether nothing was found, all that is done was really done, and at least half of the seeds could be judged."""
    seeds = {verdict["seed"] for verdict in verdicts}
    found = any(verdict["faults"] and not verdict["starved"] for verdict in verdicts)
    return not (found or effects.missing(verdicts)) and 2 * len(undecided(verdicts)) <= len(seeds)


def _until(seeds: Iterator[int], deadline: float) -> Iterator[int]:
    for seed in seeds:
        if time.monotonic() > deadline:
            return
        yield seed
