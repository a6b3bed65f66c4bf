"""Benchmark ``goodput`` (G1): a training that asks for 32 nodes on spot pools for a month, with and without elasticity.

All policies meet the same draws. Goodput is the time of workers that is kept, of what the job asks for all the time. What is
the product's own in this and what is arithmetic says `tests.scale.spot_months`; what the figures mean, docs/benchmarks.md.
``CONVOY_BENCH_SEEDS`` changes the number of draws.
"""

import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import mean
from typing import Any

import pytest

from tests.scale.spot_months import ELASTIC, STATIC, SUSPEND, Month
from tests.scale.spot_pool import DAY, POOLS, draw

pytestmark = pytest.mark.bench
MONTH, LEAST = 30 * DAY, 8
SEEDS = range(1, 1 + int(os.environ.get("CONVOY_BENCH_SEEDS", "20")))
POLICIES = {
    "static": partial(Month, policy=STATIC),
    "suspend_resume": partial(Month, policy=SUSPEND),
    "elastic": partial(Month, policy=ELASTIC),
    "elastic_that_asks_for_nothing": partial(Month, policy=ELASTIC, asks=False),
}
GOALS = {"calm": 0.918, "busy": 0.808, "bursts": 0.873}
MARGIN = 0.02


def months(pool: str, begin: Callable[..., Month]) -> list[Month]:
    about = POOLS[pool]
    return [begin(about, least=LEAST).run(draw(about, seed, MONTH), MONTH) for seed in SEEDS]


def spread(values: Sequence[float]) -> dict[str, float]:
    return {"mean": round(mean(values), 4), "least": round(min(values), 4), "most": round(max(values), 4)}


@pytest.mark.parametrize("pool", POOLS)
def test_an_elastic_job_with_notice_keeps_most_of_what_it_asks_for(
    pool: str, report: Callable[[str, dict[str, Any]], None]
) -> None:
    began, figures = time.process_time(), dict[str, dict[str, Any]]()
    for name, begin in POLICIES.items():
        runs = months(pool, begin)
        figures[name] = {
            "of_asked": spread([month.goodput for month in runs]),
            "of_available": spread([month.of_available for month in runs]),
            "restarts": round(mean(month.restarts for month in runs)),
        }
    elastic = figures["elastic"]["of_asked"]["mean"]
    sizes = {"seeds": f"{SEEDS[0]}-{SEEDS[-1]}", "nodes": POOLS[pool].nodes, "min": LEAST, "days": MONTH / DAY}
    met = elastic >= GOALS[pool] - MARGIN
    cost = {"goal": GOALS[pool], "met": met, "cpu_s": round(time.process_time() - began, 1)}
    report(f"goodput-{pool}", {**figures, **sizes, **cost})
    assert met
