"""One scheduling cycle on a picture of the world: the same world gives the same plan, and is left as it was.

What a process that keeps its picture does step by step (`jobs.core.scheduling.scheduler`), done once for all.
"""

from collections.abc import Callable
from contextlib import nullcontext
from datetime import datetime

from jobs.core.admission.plans import Placed, Plan, Waits
from jobs.core.admission.snapshot import World
from jobs.core.scheduling.backfill_reservation import Runs, no_runs
from jobs.core.scheduling.scheduler import Scheduler

__all__ = ["Placed", "Plan", "Waits", "run"]


def run(world: World, now: datetime, runs: Callable[[], Runs] = no_runs) -> Plan:
    with world.quota.ledger.charged(()) if world.quota else nullcontext():
        scheduler = Scheduler.of(world)
        plan = scheduler.run(now, runs)
        more = plan
        while more.more:
            more = scheduler.run(now, runs)
            plan.placed += more.placed
            plan.waits += more.waits
            plan.claimants = more.claimants
    return plan
