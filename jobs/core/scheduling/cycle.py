"""One scheduling cycle on a snapshot: the same snapshot gives the same plan, and is left as it was.

Does at once what the scheduler process does step by step with a `Scheduler` that it keeps between cycles.
"""

from collections.abc import Callable
from contextlib import nullcontext
from datetime import datetime

from jobs.core.admission.guarding import Guard, unguarded
from jobs.core.admission.plans import Placed, Plan, Waits
from jobs.core.admission.snapshot import Snapshot
from jobs.core.scheduling.backfill_reservation import Runs, no_runs
from jobs.core.scheduling.scheduler import Scheduler

__all__ = ["Placed", "Plan", "Waits", "run_cycle"]


def run_cycle(snapshot: Snapshot, now: datetime, runs: Callable[[], Runs] = no_runs, guard: Guard = unguarded) -> Plan:
    with snapshot.quota.ledger.charged(()) if snapshot.quota else nullcontext():
        scheduler = Scheduler.from_snapshot(snapshot, guard)
        plan = scheduler.run(now, runs)
        more = plan
        while more.more:
            more = scheduler.run(now, runs)
            plan.placed += more.placed
            plan.waits += more.waits
            plan.preemptors = more.preemptors
    return plan
