"""When waiting jobs may start: a guess from how long finished jobs of their queues ran, with what it rests on.

Computed over all running and waiting jobs, so one result serves all requests of a few seconds. A job too far back in a long
queue, or in one that admits no jobs, gets no estimate; `quotas.core.estimate` says what else is not guessed about.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock
from time import perf_counter

from jobs import snapshot
from jobs.core.reasons import AWAITS_JOBS, Code
from jobs.models import Job
from jobs.services.scheduling.demand import demand_provider
from quotas.core import estimate
from quotas.core.accounts.ledger import Ledger
from quotas.core.estimate import Estimate

_FRESH = timedelta(seconds=5)
_REST = 20
"""Looked at again after so many times as long as it took: with ten thousand jobs a look takes a second."""
_PAST = timedelta(days=30)
_SAMPLES = 2000
_FARTHEST = 5000
"""Waiting jobs looked at, by their place."""


@dataclass(frozen=True, slots=True)
class _Look:
    starts: Mapping[str, Estimate | None]
    at: datetime
    holds: timedelta


_NO_GUESS = (
    Code.NO_POLICY, Code.NEVER_FITS, Code.NO_CLUSTER, Code.NO_CLUSTER_FITS, Code.QUEUE_HELD, Code.BUDGET_SPENT,
    Code.WINDOW_AHEAD, Code.SUSPENDED, *AWAITS_JOBS,
)  # fmt: skip
_last: list[_Look] = []
_looking = Lock()


def estimated_starts(now: datetime) -> Mapping[str, Estimate | None]:
    """By `key` of each waiting job. Computed by one thread at a time; the others get the previous result meanwhile."""
    known = _cached(now)
    if known is None and _looking.acquire(blocking=not _last):
        try:
            known = _cached(now) or _load_running(now)
        finally:
            _looking.release()
    return (known or _last[-1]).starts


def estimate_of(job: Job, starts: Mapping[str, Estimate | None]) -> Estimate | None:
    """Of a waiting job whose gate the guess knows: it rests on the quota alone, so not where the clusters are in the way."""
    reason = job.reason or {}
    clusters = reason.get("clusters") or ()
    unplaceable = bool(clusters) and not any(each.get("fits") for each in clusters)
    if unplaceable or reason.get("code") in _NO_GUESS:
        return None
    return starts.get(unit_key(job))


def unit_key(job: Job) -> str:
    return demand_provider.key(job.kind, job.namespace, job.name)


def clear_cache() -> None:
    """So that the next to ask is answered anew."""
    _last.clear()


def _cached(now: datetime) -> _Look | None:
    return _last[-1] if _last and timedelta() <= now - _last[-1].at < _last[-1].holds else None


def _load_running(now: datetime) -> _Look:
    began = perf_counter()
    starts = starts_now(now)
    _last[:] = [_Look(starts, now, max(_FRESH, _REST * timedelta(seconds=perf_counter() - began)))]
    return _last[-1]


def starts_now(now: datetime) -> Mapping[str, Estimate | None]:
    """As `starts`, looked at anew: for who asks about what is not so."""
    tree, _ = snapshot.tree_in_force()
    if tree is None:
        return {}
    running, waiting = demand_provider.load_demand(tree, now)
    ledger = Ledger.from_charges(tree, (each.charge for each in running))
    ran = estimate.RunTimes(ledger, _run_times(now))
    closed = snapshot.closed_leaves(tree)
    nearest = sorted((unit for unit in waiting if unit.leaf not in closed), key=lambda unit: unit.place)[:_FARTHEST]
    return estimate.estimate_starts(ledger, running, nearest, ran, now)


def _run_times(now: datetime) -> dict[str, list[float]]:
    """Of the latest to end well, leaf by leaf."""
    ended = Job.objects.filter(state=Job.State.SUCCEEDED, started_at__isnull=False, finished_at__gte=now - _PAST)
    rows = ended.exclude(leaf="").order_by("-finished_at").values_list("leaf", "started_at", "finished_at")
    seconds: dict[str, list[float]] = defaultdict(list)
    for leaf, started_at, finished_at in rows[:_SAMPLES]:
        if started_at and finished_at:
            seconds[leaf].append((finished_at - started_at).total_seconds())
    return seconds
