"""The use of queues and users for one run of the cycle, in trees that share by it; other trees load nothing."""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache

from jobs.core.gang.types import Gang
from jobs.core.scheduling.backfill_reservation import Runs
from jobs.core.scheduling.waiting import Waiting
from quotas.core.accounts.queue_use import QueueUse


class UseOverTime:
    def __init__(self, waiting: Waiting) -> None:
        self._waiting = waiting
        self._placed: dict[int, Gang] = {}
        """Gangs that earlier runs of this cycle placed: the running gangs that are loaded do not include them."""
        self._at: datetime | None = None

    def load(self, load_runs: Callable[[], Runs], now: datetime) -> QueueUse | None:
        """The use as of now, with what was placed since; None where no node shares by it."""
        quota = self._waiting.quota
        if quota is None or not quota.ledger.tree.shares_over_time:
            return None
        runs, gangs = load_runs(), self._waiting.gangs
        self._begin(now)
        use = QueueUse(quota.ledger, runs.use_by_user(now.timestamp()), _expected(gangs, runs))
        for job, gang in self._placed.items():
            if job not in runs.by_job and job not in gangs:
                use.add(gang.leaf, gang.user, gang.devices * runs.runtime_of(gang))
        return use

    def placed(self, gang: Gang, now: datetime) -> None:
        if gang.leaf:
            self._begin(now)
            self._placed[gang.job_id] = gang

    def _begin(self, now: datetime) -> None:
        if self._at != now:
            self._placed, self._at = {}, now


def _expected(gangs: Mapping[int, Gang], runs: Runs) -> Callable[[str], float]:
    @cache
    def expected(job: str) -> float:
        gang = gangs.get(int(job))
        return gang.devices * runs.runtime_of(gang) if gang else 0.0

    return expected
