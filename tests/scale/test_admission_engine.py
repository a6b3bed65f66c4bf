"""Benchmark ``admission``, its pure part: the quota engine alone on a tree of 1,000 leaves, on one core.

Result in ``.convoy/bench/admission_engine.json``. No two jobs ask the same, so that every decision is made and none remembered;
processor time, the best of three, because other work on the machine is not what is measured. The whole path, object in to
placement durable, is measured elsewhere.
"""

import json
import os
import platform
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from deploy.bootstrap.home import ROOT
from quotas.core import estimate
from quotas.core.accounts.ledger import Charge, Ledger
from quotas.core.queues import fair_share
from quotas.core.queues.order import Unit
from quotas.core.reclaiming import reclaim
from quotas.core.reclaiming.candidates import Running
from quotas.core.trees.amounts import of_job
from quotas.core.trees.parsing import parse_tree
from quotas.core.trees.tree import Tree
from tests.quotas.core.builders import LEND, NOON, manifest, quota

pytestmark = pytest.mark.bench
TEAMS, LEAVES, JOBS = 10, 100, 20_000
PER_S = 20_000
"""The floor; 33,000 as measured on one of two busy cores in November 2026."""


def amounts(times: int) -> dict[str, Any]:
    return {"cpu": 10 * times, "memory": f"{100 * times}Gi", "nvidia.com/gpu": 8 * times}


def body(**fields: Any) -> dict[str, Any]:
    total = amounts(TEAMS * LEAVES)
    teams = [
        quota(
            f"t{t}",
            amounts(LEAVES),
            amounts(2 * LEAVES),
            *(quota(f"q{i}", amounts(1), amounts(LEAVES), namespaces=[f"n{t}-{i}"], **fields) for i in range(LEAVES)),
        )
        for t in range(TEAMS)
    ]
    return manifest(quota("root", total, total, *teams))


def tree(**fields: Any) -> Tree:
    found = parse_tree(body(**fields)).tree
    assert found is not None
    return found


def jobs(found: Tree) -> list[Unit]:
    """All different in what they ask: nothing can be answered from memory."""
    leaves = [leaf.path for leaf in found.leaves]
    asks = [{"cpu": 1000 + i, "memory": 2**30 * (1 + i % 5), "nvidia.com/gpu": 1 + i % 3} for i in range(JOBS)]
    return [
        Unit(f"{i}", f"{i}", Charge(leaves[i * 7 % len(leaves)], of_job(ask)), i % 3, NOON + timedelta(seconds=i))
        for i, ask in enumerate(asks)
    ]


def seconds(prepare: Callable[[], Callable[[], object]]) -> float:
    """Processor seconds, the best of three; what is prepared does not count."""
    best = float("inf")
    for _ in range(3):
        run = prepare()
        began = time.process_time()
        run()
        best = min(best, time.process_time() - began)
    return best


def passes(found: Tree) -> float:
    def prepare() -> Callable[[], object]:
        ledger, waiting = Ledger(found), jobs(found)
        return lambda: fair_share.plan_admission(ledger, waiting)

    return seconds(prepare)


def reclaims(found: Tree) -> float:
    """One team has borrowed everything with 8,000 jobs, and a leaf of another wants all it was promised."""
    charges = [Charge(f"root/t0/q{i % LEAVES}", of_job({"nvidia.com/gpu": 1})) for i in range(TEAMS * LEAVES * 8)]
    running = [Running(f"{i}", each, i % 3, NOON + timedelta(seconds=i)) for i, each in enumerate(charges)]
    preemptor = Unit("claims", "claims", Charge("root/t1/q0", of_job({"nvidia.com/gpu": 8})), 0, NOON)
    ledger = Ledger.from_charges(found, charges)
    made = reclaim.plan_reclaim(ledger, preemptor, running, lambda gone: True)
    assert made is not None and len(made.victims) == 8
    return seconds(lambda: lambda: reclaim.plan_reclaim(ledger, preemptor, running, lambda gone: True))


def estimates(found: Tree) -> float:
    """What runs is what the engine let in; half of the rest waits, and every queue has finished jobs to look at."""
    ledger = Ledger(found)
    made = fair_share.plan_admission(ledger, jobs(found))
    running = [Running(each.id, each.charge, each.priority, NOON) for each in made.admitted]
    waiting = [unit for unit, _ in made.waits[:10_000]]
    ran = {leaf.path: [60.0 + i for i in range(50)] for leaf in found.leaves}
    now = NOON + timedelta(seconds=30)
    return seconds(
        lambda: lambda: estimate.estimate_starts(ledger, running, waiting, estimate.RunTimes(ledger, ran), now)
    )


def test_the_engine_decides_twenty_thousand_jobs_a_second_with_a_thousand_leaves() -> None:
    plain, lending = tree(), tree(attributes={LEND: json.dumps({"cpu": 5, "memory": "50Gi", "nvidia.com/gpu": 4})})
    found = body()
    result = {
        "leaves": len(plain.leaves),
        "jobs": JOBS,
        "decisions_per_s": round(JOBS / passes(plain)),
        "decisions_per_s_with_lendlimits": round(JOBS / passes(lending)),
        "read_tree_ms": round(1000 * seconds(lambda: lambda: parse_tree(found)), 1),
        "reclaim_among_8000_ms": round(1000 * reclaims(plain), 1),
        "estimate_10000_waiting_ms": round(1000 * estimates(plain), 1),
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}, numpy {np.__version__}",
        "load": round(os.getloadavg()[0], 1),
    }
    folder = ROOT / ".convoy" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "admission_engine.json").write_text(json.dumps(result, indent=2))
    print(f"\n{json.dumps(result)}", file=sys.stderr)
    assert result["decisions_per_s"] >= PER_S
