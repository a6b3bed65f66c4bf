"""Benchmark ``idle``: the processor time of a product that has nothing to do, by process, over five minutes.

The product as ``up`` starts it, in three ways: empty; with the demo's three simulated clusters, in which the demo's job
runs; and with the demo's teams at work. The goal is for the first two: all processes together use at most 3 % of one core.
What pods compute that run as real processes is no cost of the product and shown apart. Results in ``.convoy/bench/idle*.json``.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.processor import PODS, costs, difference
from tests.support.product import Product

pytestmark = pytest.mark.bench
MEASURED_S, SETTLED_S = 300.0, 30.0
MOST_SHARE = 3.0
"""Percent of one core."""


@pytest.fixture
def product(tmp_path: Path) -> Iterator[Product]:
    product = Product(tmp_path / "home")
    yield product
    product.manage("down")


def test_an_idle_product_with_the_demo_fleet_uses_three_percent_of_a_core_at_most(
    product: Product, report: Callable[[str, dict[str, Any]], None]
) -> None:
    _up(product, CONVOY_DEMO_LIFE="off")
    figures = _measured(product)
    report("idle", figures)
    assert figures["percent_of_a_core"] <= MOST_SHARE


def test_an_empty_product_uses_three_percent_of_a_core_at_most(
    product: Product, report: Callable[[str, dict[str, Any]], None]
) -> None:
    _up(product, "--empty")
    figures = _measured(product)
    report("idle-empty", figures)
    assert figures["percent_of_a_core"] <= MOST_SHARE


def test_what_a_demo_fleet_with_teams_at_work_costs(
    product: Product, report: Callable[[str, dict[str, Any]], None]
) -> None:
    _up(product)
    figures = _measured(product)
    report("idle-lively", figures)
    assert "demo" in figures["by_process"]


def _up(product: Product, *options: str, **env: str) -> None:
    started = product.manage("up", "--detach", *options, **env)
    assert started.returncode == 0, started.stdout + started.stderr


def _measured(product: Product) -> dict[str, Any]:
    """Percent of one core and wakeups a minute, by process and together; the jobs' own processes apart."""
    time.sleep(SETTLED_S)
    before, began = costs(product.home), time.monotonic()
    time.sleep(MEASURED_S)
    spent, seconds = difference(costs(product.home), before), time.monotonic() - began
    share = {name: round(100 * cost.cpu_s / seconds, 2) for name, cost in spent.items()}
    wakeups = {name: round(60 * cost.wakeups / seconds) for name, cost in spent.items()}
    own = sum(percent for name, percent in share.items() if name != PODS)
    return {
        "seconds": round(seconds),
        "percent_of_a_core": round(own, 2),
        "without_simulator": round(own - share.get("simulator", 0.0), 2),
        "by_process": share,
        "wakeups_a_minute": wakeups,
    }
