"""Benchmark ``ettr`` (G2, its accounting): months of failures at published rates, and the ETTR that goodput reports of them.

Failures are drawn; checkpoints, detection and restarts take what the row says. The spans are added up as in the product.
The goal is the formula 1 - b/tau - rate (tau/2 + detect + restart) within one point. How long the product takes to detect a
failure and to place a gang again is not measured here.
"""

import random
from collections.abc import Callable, Iterator
from statistics import mean
from typing import Any

import pytest

from jobs.core.explain import goodput
from jobs.core.explain.accounting import Span
from jobs.core.explain.goodput import Pauses

pytestmark = pytest.mark.bench
DAY = 86_400.0
MONTH = 30 * DAY
SEEDS = range(20)
BLOCK_S = 5.0
CASES = {
    # GPUs, failures per 1,000 node-days, seconds: between checkpoints, to detect, to restart
    "llama3-9600-30min": (9600, 3.79, 1800.0, 60.0, 120.0),
    "llama3-9600-10min": (9600, 3.79, 600.0, 30.0, 60.0),
    "rsc1-1024-10min": (1024, 6.5, 600.0, 30.0, 60.0),
    "rsc2-1024-10min": (1024, 2.34, 600.0, 30.0, 60.0),
    "rsc-mttf-7.9h-1024": (1024, 1000 / (128 * 7.9 / 24), 600.0, 30.0, 60.0),
}


def month(
    rng: random.Random, rate: float, tau: float, detect: float, restart: float
) -> Iterator[tuple[Span, Pauses | None]]:
    """The spans of one job; ``rate`` are failures a second while it runs."""
    at, number = 0.0, 0
    while at < MONTH:
        number += 1
        runs, begin = rng.expovariate(rate), at + restart
        fails = begin + runs
        saved = begin + runs // (tau + BLOCK_S) * (tau + BLOCK_S)
        end = min(fails + detect, MONTH + detect)
        yield _span(number, "image", at, begin), None
        yield _span(number, "saved", begin, saved), Pauses(checkpoint=round(1000 * BLOCK_S * (runs // (tau + BLOCK_S))))
        yield _span(number, "unsaved", saved, end), None
        at = fails + detect


def _span(number: int, kind: str, begin: float, end: float) -> Span:
    about = ("vision", "ann", "root", "north", "H100", None)
    return Span(
        "job", number, kind, round(begin * 1000), max(round(end * 1000), round(begin * 1000)), 1, "Failed", *about
    )


def ettr(seed: int, rate: float, *seconds: float) -> float:
    made = list(month(random.Random(seed), rate, *seconds))
    pauses = {("job", span.number): pause for span, pause in made if pause}
    cut = goodput.slices([span for span, _ in made if span.begin < span.end], {}, pauses)
    times = goodput.add_up(cut, 0, round(MONTH * 1000), lambda _: "all", lambda _: "all")["all"]
    assert times.ettr is not None
    return times.ettr


@pytest.mark.parametrize("case", CASES)
def test_the_ettr_of_a_month_of_failures_is_that_of_the_formula(
    case: str, report: Callable[[str, dict[str, Any]], None]
) -> None:
    gpus, per_1000_days, tau, detect, restart = CASES[case]
    rate = gpus / 8 * per_1000_days / 1000 / DAY
    expected = 1 - BLOCK_S / tau - rate * (tau / 2 + detect + restart)
    seen = [ettr(seed, rate, tau, detect, restart) for seed in SEEDS]
    report(f"ettr-{case}", {"ettr": mean(seen), "least": min(seen), "most": max(seen), "formula": expected})
    assert abs(mean(seen) - expected) <= 0.01
