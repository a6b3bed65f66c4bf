"""Benchmark ``replay`` (B1): the Helios Venus trace of September 2020 on a virtual clock, 23,859 gangs on 1,080 GPUs.

First the engine meets the published simulator's own start times, FIFO and SJF in every virtual cluster by itself; then the
scheduler, as the product runs it, has one fleet of 15 clusters (each virtual cluster one, F15) and of 4 (F4). What the
figures mean says ``docs/benchmarks.md``. Trace: Helios (Hu et al., SC'21), CC-BY-4.0.
"""

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.progress import Progress

from jobs.core.settings import CycleSettings
from tests.scale import replaying
from tests.scale.replaying import Job, Tick

pytestmark = pytest.mark.bench
Report = Callable[[str, dict[str, Any]], None]
PUBLISHED = {
    "fifo": "7016a48513099cbfbe0f8a3641ef6b13f105c8043acbfb0b0210a3d80c4714c4",
    "sjf": "58f48d7938954a711530dc508f4ac02efc0eeb511d2e566ad73ae0118c059fb0",
}
ORDER: dict[str, Callable[[Job], int]] = {"fifo": lambda job: job.at, "sjf": lambda job: job.lasts}
NEVER = 1e9
"""Seconds: longer than the trace."""
FOUR = {"a": 34, "b": 34, "c": 34, "d": 33}
GOALS: dict[str, tuple[int, int | None]] = {"F15": (1344, 190_000), "F4": (285, None)}
"""(average wait, its 99.9th percentile), seconds: the best of the known rules that foresee nothing."""


@pytest.fixture
def folder(traces: Path) -> Path:
    found = traces / "helios-venus-sep2020"
    if not found.is_dir():
        pytest.skip(f"no Helios trace at {found}: give the folder of the traces with --traces DIR")
    return found


@pytest.fixture
def bar(request: pytest.FixtureRequest) -> Iterator[Callable[[int], Tick]]:
    """A progress bar that counts the jobs that ended."""
    with Progress(transient=True) as progress:

        def begin(jobs: int) -> Tick:
            task = progress.add_task(request.node.callspec.id, total=jobs)
            return lambda: progress.advance(task)

        yield begin


def signature(starts: Sequence[tuple[int, float]]) -> str:
    lines = "".join(f"{job},{start:.0f}\n" for job, start in sorted(starts))
    return hashlib.sha256(lines.encode()).hexdigest()


@pytest.mark.parametrize("policy", PUBLISHED)
def test_it_starts_every_job_when_the_published_simulator_does(
    policy: str, folder: Path, bar: Callable[[int], Tick], report: Report
) -> None:
    jobs, began = replaying.trace(folder), time.process_time()
    tick, starts, misbinds = bar(len(jobs)), dict[int, float](), 0
    for home, nodes in replaying.homes(folder).items():
        own = sorted((job for job in jobs if job.home == home), key=lambda job: job.at)
        yard = replaying.alone(own, nodes, ORDER[policy], tick)
        starts |= yard.starts
        misbinds += yard.misbinds
    found = signature(list(starts.items()))
    seconds = round(time.process_time() - began, 1)
    same = found == PUBLISHED[policy]
    figures = replaying.delays(jobs, starts)
    report(f"replay_{policy}", {"same_start_times": same, "misbinds": misbinds, "cpu_s": seconds, **figures})
    assert same and not misbinds


@pytest.mark.parametrize("variant", ["defaults", "no_drain", "known_run_times"])
@pytest.mark.parametrize("name", GOALS)
def test_it_queues_less_than_the_best_known_fleet_rules(
    name: str,
    variant: str,
    folder: Path,
    bar: Callable[[int], Tick],
    report: Report,
) -> None:
    settings = CycleSettings(reservation_patience_s=NEVER) if variant == "no_drain" else CycleSettings()
    jobs, began = replaying.trace(folder), time.process_time()
    sizes = replaying.homes(folder) if name == "F15" else FOUR
    yard = replaying.fleet(jobs, sizes, known=variant == "known_run_times", tick=bar(len(jobs)), settings=settings)
    found, (average, slowest) = replaying.delays(jobs, yard.starts), GOALS[name]
    met = found["avg_queue_s"] < average and (slowest is None or found["p999_queue_s"] < slowest)
    cost = {"misbinds": yard.misbinds, "cpu_s": round(time.process_time() - began, 1)}
    report(f"replay_{name}_{variant}", {"goal_s": average, "goal_p999_s": slowest, "met": met, **found, **cost})
    assert len(yard.starts) == len(jobs) and not yard.misbinds
    assert met or variant != "defaults"
