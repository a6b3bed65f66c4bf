"""The GPU-time of attempts, for trees that share by use over time: from rows alone, so that every process computes the same.

An attempt counts from its placement to its end; those of deleted jobs go on counting (`lifecycle.accounting.deleted_use`).
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any

from django.conf import settings
from django.db.models import Q, QuerySet, Value
from django.db.models.functions import Coalesce, NullIf

from jobs import snapshot
from jobs.core.scheduling.backfill_reservation import Runs
from jobs.models import Attempt, DeletedUse
from jobs.services.lifecycle.accounting import deleted_use
from quotas.core.accounts.queue_use import Account
from quotas.core.queues.recent_use import RecentUse, Stretch

_ATTEMPT = (
    "job_id", "number", "of_leaf", "job__submitted_by", "gpus", "job__gpus", "placed_at", "ended_at", "sizes",
)  # fmt: skip
_DELETED = ("job", "number", "leaf", "user", "gpus", "gpus", "placed_at", "ended_at", "sizes")
_MOST = 10**9
_FRESH = timedelta(seconds=5)
_last: list[tuple[datetime, Mapping[Account, float]]] = []


def load(runs: Runs, now: datetime) -> None:
    """Loads the use of all attempts that counts yet, if the tree in force shares by it."""
    tree, _ = snapshot.tree_in_force()
    if tree is None or not tree.shares_over_time:
        return
    runs.share_half_life = settings.CONVOY_CYCLE.share_half_life_s
    runs.shares = RecentUse(runs.share_half_life, _MOST)
    runs.counts_use = True
    _learn(runs, DeletedUse.objects.filter(ended_at__gt=deleted_use.counted_since(now)).values_list(*_DELETED), now)
    _learn(runs, _attempts(Attempt.objects.all()), now)


def so_far(now: datetime) -> Mapping[Account, float]:
    """GPU-seconds by leaf and user as they count now, without what running jobs are expected to use yet."""
    if _last and timedelta() <= now - _last[-1][0] < _FRESH:
        return _last[-1][1]
    runs = Runs()
    load(runs, now)
    use = runs.use_by_user(now.timestamp())
    _last[:] = [(now, use)]
    return use


def stretches(begin: datetime, end: datetime) -> Iterator[Stretch[str]]:
    """GPUs of leaves, from when until when, that still count after ``begin`` or came until ``end``. Two queries."""
    counts = deleted_use.counted_since(begin)
    runs = Attempt.objects.filter(Q(ended_at=None) | Q(ended_at__gt=counts), placed_at__lt=end)
    deleted = DeletedUse.objects.filter(ended_at__gt=counts, placed_at__lt=end).values_list(*_DELETED)
    for _, _, leaf, _, gpus, all_gpus, placed_at, ended_at, sizes in chain(deleted, _attempts(runs)):
        since = placed_at.timestamp()
        for until_ms, gpus_before in sizes or ():
            yield leaf, gpus_before, since, until_ms / 1000
            since = until_ms / 1000
        until = float("inf") if ended_at is None else ended_at.timestamp()
        yield leaf, all_gpus if gpus is None else gpus, since, until


def read_again(runs: Runs, jobs: Iterable[int]) -> None:
    """Brings the attempts of these jobs up to date, some of which may be deleted."""
    if not runs.counts_use:
        return
    changed = set(jobs)
    runs.open_attempts = {key: attempt for key, attempt in runs.open_attempts.items() if key[0] not in changed}
    _learn(runs, DeletedUse.objects.filter(job__in=changed).values_list(*_DELETED))
    _learn(runs, _attempts(Attempt.objects.filter(job__in=changed)))


def _attempts(rows: QuerySet[Attempt]) -> Iterable[Any]:
    rows = rows.annotate(of_leaf=Coalesce(NullIf("leaf", Value("")), "job__leaf"))
    return rows.filter(job__gpus__gt=0).exclude(of_leaf="").order_by().values_list(*_ATTEMPT)


def _learn(runs: Runs, rows: Iterable[Any], now: datetime = datetime.max.replace(tzinfo=UTC)) -> None:
    """What ended later than ``now``, while the clock was ahead, counts until now: else it would outweigh all other use."""
    for job, number, leaf, user, gpus, all_gpus, placed_at, ended_at, sizes in rows:
        key, devices, since = (job, number), all_gpus if gpus is None else gpus, placed_at.timestamp()
        for until_ms, gpus_before in sizes or ():
            runs.shares.ended((*key, until_ms), (leaf, user), gpus_before, since, until_ms / 1000)
            since = until_ms / 1000
        if ended_at is None:
            runs.open_attempts[key] = ((leaf, user), devices, since)
        else:
            runs.shares.ended(key, (leaf, user), devices, since, min(ended_at, now).timestamp())
