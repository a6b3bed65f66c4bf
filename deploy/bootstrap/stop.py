"""``down`` and ``reset``: the end of the processes, and the end of their state."""

import argparse
import shutil
import sys

from deploy.bootstrap import running
from deploy.bootstrap.home import Home
from deploy.bootstrap.problems import Problem
from deploy.bootstrap.progress import Steps


def down(argv: list[str], home: Home, steps: Steps) -> int:
    argparse.ArgumentParser(prog="manage.py down", description="Stops Convoy; its state stays.").parse_args(argv)
    stop(home, steps)
    return 0


def reset(argv: list[str], home: Home, steps: Steps) -> int:
    parser = argparse.ArgumentParser(prog="manage.py reset", description="Stops Convoy and forgets its state.")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    if not parser.parse_args(argv).yes and home.path.exists():
        ask(f"Delete everything in {home.path} (jobs, clusters, passwords)? [y/N] ")
    stop(home, steps)
    if home.path.exists() and not home.run.is_dir() and any(home.path.iterdir()):
        raise Problem(f"{home.path} does not look like Convoy's folder, so I leave it alone.")
    if home.path.exists():
        shutil.rmtree(home.path)
    steps.say("Forgotten. `python3 manage.py up` starts afresh.")
    return 0


def stop(home: Home, steps: Steps) -> None:
    if not home.path.exists() or not (running.is_running(home) or running.state(home)):
        steps.say("Convoy is not running.")
        return
    with steps.step("Stopping Convoy"):
        running.end(home)


def ask(question: str) -> None:
    if not sys.stdin.isatty():
        raise Problem("reset deletes state, so it asks first: answer on a terminal, or say --yes.")
    if input(question).strip().lower() not in ("y", "yes"):
        raise Problem("Nothing was deleted.")
