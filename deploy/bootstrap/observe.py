"""``status`` and ``logs``: what runs, how it is, and what it says.

They read files only, so they work when nothing else does.
"""

import argparse
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from deploy.bootstrap import running
from deploy.bootstrap.home import Home
from deploy.bootstrap.problems import Problem
from deploy.bootstrap.progress import GREEN, RED, Steps
from deploy.supervisor import processes

COLOURS = tuple(f"\x1b[{number}m" for number in (36, 35, 33, 34, 32, 96, 95))
ORDER = ("supervisor", "broker", "preload", "migrate", "web", "kube", "worker", "beat", "watcher", "simulator")


def status(argv: list[str], home: Home, steps: Steps) -> int:
    argparse.ArgumentParser(prog="manage.py status", description="What runs, and is it ready.").parse_args(argv)
    if not running.is_running(home):
        steps.say("Convoy is not running: python3 manage.py up starts it.")
        return 3
    state = running.state(home)
    rows = running.children(state)
    steps.say(f"http://127.0.0.1:{state.get('port')}   broker: {state.get('broker')}   state in {home.path}\n")
    steps.say(steps.bold(f"{'PROCESS':<11}{'STATE':<10}{'PID':>8}{'UP':>9}{'RESTARTS':>10}{'MEMORY':>10}"))
    for row in rows:
        shade = GREEN if row.is_ready else RED
        memory = f"{processes.memory_mib(row.pid):.0f} MiB" if row.pid else ""
        steps.say(
            f"{row.name:<11}{steps.shade(f'{row.state:<10}', shade)}{row.pid or '':>8}{age(row):>9}"
            f"{max(row.starts - 1, 0):>10}{memory:>10}"
        )
    return 0 if rows and all(row.is_ready for row in rows) else 1


def age(row: running.ChildState) -> str:
    if row.began is None or not row.pid:
        return ""
    seconds = int(time.time() - row.began)
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"


def logs(argv: list[str], home: Home, steps: Steps) -> int:
    parser = argparse.ArgumentParser(prog="manage.py logs", description="What the processes say.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these processes")
    parser.add_argument("-f", "--follow", action="store_true", help="stay, and show what comes")
    parser.add_argument("-n", "--lines", type=int, default=20, help="how many lines back (default 20)")
    options = parser.parse_args(argv)
    if missing := [name for name in options.names if not (home.logs / f"{name}.log").exists()]:
        raise Problem(f"There is no log of {missing[0]} in {home.logs}.")
    reader = Reader(home.logs, options.names, steps)
    reader.show(options.lines)
    if options.follow:
        reader.follow(lambda: True)
    return 0


class Reader:
    """Several log files as one stream, each line under its process's name and colour."""

    def __init__(self, folder: Path, names: list[str], steps: Steps) -> None:
        self.folder = folder
        self.names = names
        self.steps = steps
        self.open: dict[str, BinaryIO] = {}

    def show(self, lines: int) -> None:
        """The last lines of each; what comes later is left to ``follow``."""
        for name, path in self._files():
            handle = self.open[name] = path.open("rb")
            said = handle.read().splitlines()
            for line in said[max(len(said) - lines, 0) :]:
                self._print(name, line)

    def follow(self, goes_on: Callable[[], bool]) -> None:
        while goes_on():
            if not any([self._more(name, path) for name, path in self._files()]):
                time.sleep(0.2)

    def _files(self) -> Iterator[tuple[str, Path]]:
        for path in sorted(self.folder.glob("*.log"), key=lambda path: place(path.stem)):
            if not self.names or path.stem in self.names:
                yield path.stem, path

    def _more(self, name: str, path: Path) -> bool:
        """Whether it said anything; a file that was rotated away is read to its end, then its successor is opened."""
        if name not in self.open:
            self.open[name] = path.open("rb")
        lines = self.open[name].readlines()
        for line in lines:
            self._print(name, line.rstrip(b"\n"))
        if not lines and path.exists() and path.stat().st_ino != inode(self.open[name]):
            self.open.pop(name).close()
        return bool(lines)

    def _print(self, name: str, line: bytes) -> None:
        prefix = self.steps.shade(f"{name:<10} |", COLOURS[place(name) % len(COLOURS)])
        self.steps.say(f"{prefix} {line.decode(errors='replace')}")


def place(name: str) -> int:
    return ORDER.index(name) if name in ORDER else len(ORDER)


def inode(handle: BinaryIO) -> int:
    return os.fstat(handle.fileno()).st_ino
