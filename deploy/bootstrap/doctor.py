"""``doctor``: looks at everything a start needs, and says what is wrong and what to do about it."""

import argparse
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from deploy.bootstrap import environment, ports, running
from deploy.bootstrap.environment import Environment
from deploy.bootstrap.home import ROOT, Home
from deploy.bootstrap.problems import Problem
from deploy.bootstrap.progress import GREEN, RED, Steps

NEEDED_MIB = 1500


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at; ``advice`` is empty when it is well."""

    what: str
    seen: str
    advice: str = ""


def command(argv: list[str], home: Home, steps: Steps) -> int:
    argparse.ArgumentParser(prog="manage.py doctor", description="What is wrong, and what to do.").parse_args(argv)
    findings = [finding for look in LOOKS for finding in look(home)]
    for finding in findings:
        mark = steps.shade("✗", RED) if finding.advice else steps.shade("✓", GREEN)
        steps.say(f"{mark} {finding.what:<12} {finding.seen}")
        if finding.advice:
            steps.say(f"  {'':<12} → {finding.advice}")
    return 1 if any(finding.advice for finding in findings) else 0


def python(home: Home) -> Iterator[Finding]:
    version = ".".join(str(part) for part in sys.version_info[:3])
    advice = ""
    try:
        environment.check_python()
    except Problem as problem:
        advice = str(problem)
    yield Finding("python", f"{version} at {sys.executable}", advice)


def packages(home: Home) -> Iterator[Finding]:
    venv = Environment(ROOT, Steps())
    if venv.is_fresh():
        yield Finding("packages", "as locked", "")
    else:
        yield Finding("packages", "not installed, or not as locked", "python3 manage.py up installs them")


def disk(home: Home) -> Iterator[Finding]:
    for what, place in (("disk", ROOT), ("home disk", nearest(home.path))):
        free = shutil.disk_usage(place).free // 2**20
        advice = f"free some space: a start needs about {NEEDED_MIB} MiB" if free < NEEDED_MIB else ""
        yield Finding(what, f"{free} MiB free at {place}", advice)


def database(home: Home) -> Iterator[Finding]:
    path = home.path / "convoy.sqlite3"
    if not path.exists():
        yield Finding("database", "none yet")
        return
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5) as connection:
            said = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.Error as error:
        said = str(error)
    advice = "" if said == "ok" else "restore a copy, or python3 manage.py reset"
    yield Finding("database", f"{path}: {said}", advice)


def port(home: Home) -> Iterator[Finding]:
    wanted = int(home.settings().get("CONVOY_PORT", 8000))
    if running.is_running(home):
        yield Finding("port", f"{running.state(home).get('port')} is ours")
    elif ports.is_free(wanted):
        yield Finding("port", f"{wanted} is free")
    else:
        yield Finding("port", f"{wanted} is in use by another program; up will take the next free one")


def processes(home: Home) -> Iterator[Finding]:
    if not running.is_running(home):
        yield Finding("processes", "not running")
        return
    state = running.state(home)
    yield Finding("broker", str(state.get("broker")))
    for row in running.children(state):
        advice = "" if row.is_ready else f"python3 manage.py logs {row.name} has more. Its last lines:\n"
        yield Finding(row.name, row.state, advice and advice + running.last_words(home, row.name, 4))


def nearest(path: Path) -> Path:
    return next(parent for parent in (path, *path.parents) if parent.exists())


LOOKS: tuple[Callable[[Home], Iterator[Finding]], ...] = (python, packages, disk, database, port, processes)
