"""The demo's life: teams that submit jobs for ever, as people would, so that every page has something true to show.

A process of its own that speaks to the REST API with the token of the command line and keeps nothing: what there is to do
follows from the jobs there are. Every kind of job of `TEAMWORK` has one at a time and a pause after it; what has ended is
removed after a while. It rests while a cluster is away, so that what has to move finds room, and does nothing in a fleet
whose quota tree is not the demo's. `CONVOY_DEMO_LIFE=off` keeps it from starting.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from deploy.bootstrap.problems import Problem
from deploy.bootstrap.rest import Api
from deploy.demo import teamwork
from deploy.demo.teamwork import TEAMS, TEAMWORK, Work

LABEL = "convoy.dev/demo"
KEPT = 2
"""Ended jobs of each kind that stay to be looked at."""
LONGEST_KEPT = timedelta(hours=2)
AT_ONCE = 3
"""Submitted in one round at most."""
MOST = 20
"""Jobs that run or wait, above which nothing is submitted whatever the rest says."""
ENDED = ("Succeeded", "Failed")
BRISK_S, GENTLE_S = 4.0, 15.0
PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True)
class Seen:
    """A job of the demo as the fleet shows it."""

    id: str
    work: str
    state: str
    ended_at: datetime | None

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED


@dataclass(frozen=True, slots=True)
class Round:
    """What one look at the fleet leads to."""

    submit: tuple[Work, ...]
    remove: tuple[str, ...]


def plan(jobs: Sequence[Seen], now: datetime, *, calm: bool) -> Round:
    """``calm``: every cluster is ready; while one is not, nothing new is submitted."""
    by_work: dict[str, list[Seen]] = {work.name: [] for work in TEAMWORK}
    for job in jobs:
        by_work.setdefault(job.work, []).append(job)
    room = MOST - sum(not job.has_ended for job in jobs)
    due = [work for work in TEAMWORK if calm and _is_due(work, by_work[work.name], now)]
    stale = [job.id for group in by_work.values() for job in _stale(group, now)]
    return Round(tuple(due[: max(0, min(AT_ONCE, room))]), tuple(stale))


def _is_due(work: Work, jobs: Sequence[Seen], now: datetime) -> bool:
    if any(not job.has_ended for job in jobs):
        return False
    last = max((job.ended_at for job in jobs if job.ended_at), default=None)
    return last is None or now - last >= timedelta(seconds=work.pause_s)


def _stale(jobs: Iterable[Seen], now: datetime) -> list[Seen]:
    """Of one kind: those that ended before the latest two, or long ago."""
    ended = sorted((job for job in jobs if job.has_ended and job.ended_at), key=lambda job: job.ended_at or now)
    old = [job for job in ended if job.ended_at and now - job.ended_at > LONGEST_KEPT]
    return [*ended[:-KEPT], *(job for job in ended[-KEPT:] if job in old)]


def seen(row: dict[str, Any]) -> Seen:
    ended = row["finished_at"]
    at = datetime.fromisoformat(ended) if ended else None
    return Seen(row["id"], row["labels"][LABEL], row["state"], at)


def take_round(api: Api, now: datetime, rng: random.Random) -> Round:
    """Looks, submits and removes; raises `Problem` when the product does not answer."""
    rows = api.results(f"jobs/?page_size=200&ordering=-created_at&labels={LABEL}")
    clusters = api.results("clusters/?page_size=50")
    calm = bool(clusters) and all(each["state"] == "Ready" for each in clusters)
    jobs = [seen(row) for row in rows if not row["deleting_at"]]
    decided = plan(jobs, now, calm=calm)
    for work in decided.submit:
        answer = api.apply(teamwork.manifest(work, rng).encode())
        if not answer.ok:
            sys.stderr.write(f"{work.name} was refused: {answer.said}\n")
    for uid in decided.remove:
        api.delete(f"jobs/{uid}/")
    return decided


def is_the_demos(api: Api) -> bool:
    """Whether the quota tree in force has the demo's teams: any other tree belongs to the user and is left alone."""
    answer = api.get("quota/tree/")
    paths = {node["path"] for node in answer.body["nodes"]} if answer.ok else set()
    return {f"root/{team}" for team in TEAMS} <= paths


def run(home: Path, port: int) -> None:
    rng = random.Random()  # noqa: S311  (names and durations, no secrets)
    began = time.monotonic()
    while True:
        try:
            api = Api(port, json.loads((home / "cli.json").read_text())["token"])
            if is_the_demos(api):
                take_round(api, datetime.now(UTC), rng)
        except (OSError, KeyError, ValueError, Problem):
            # Not ready yet, or restarting: the next round finds the same work.
            time.sleep(PATIENCE_S)
        time.sleep(BRISK_S if time.monotonic() - began < 60 else GENTLE_S)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m deploy.demo.life", description=__doc__)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args(arguments)
    run(options.home, options.port)
    return 0


if __name__ == "__main__":
    sys.exit(main())
