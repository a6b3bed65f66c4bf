"""Records values over time: what happened since the last pass, down-sampled where a minute or an hour is complete.

One process at a time does it, under a lease. A pass appends points and moves `SeriesProgress` in one transaction, if no other
process has moved it: one that dies or is late writes all of a pass or nothing, and the next one goes on from there. What is
counted from runs is counted for all of the time since; what is only sampled is null for a time without passes.
"""

from datetime import UTC, datetime, timedelta

from django.db import transaction

from fleet.changes import journal
from fleet.services.operations.exclusive import exclusive
from jobs.core.series.catalogue import FINE, HOUR, MINUTE, Key, absent, floor, is_recountable
from jobs.core.series.downsampling import Value, coarser
from jobs.core.series.recount import recount
from jobs.models import Series, SeriesPoint, SeriesProgress
from jobs.services.lifecycle.accounting import runs
from jobs.services.series import points, samples

LAG_S = 10
"""A bucket is recorded so long after its end: what began in it is committed by then."""
UNSEEN_S = 60
"""Without a change in the journal a pass is made this often: nodes change without one."""
GAP_S = 180
"""After a longer time without a pass, what is only sampled counts as unknown for that time."""
_AT_ONCE_S = HOUR
_CHUNKS = 48
"""Of `_AT_ONCE_S`, in one run: after two days of silence the rest follows in the next."""
_TERM = timedelta(seconds=120)
"""Longer than a pass takes."""


class Recorder:
    """Makes the passes of one process, and remembers the last value of each series while no other process writes."""

    def __init__(self) -> None:
        self._heads = points.Heads()
        self._fine = -1
        """Up to when ``_heads`` is true."""

    def run(self, now: datetime) -> bool:
        """Makes a pass if there is anything to record. Returns whether it was made."""
        at, version = now.timestamp(), journal.tip()
        progress = SeriesProgress.objects.first()
        if progress is not None and _is_idle(progress, version, at):
            return False
        with exclusive("jobs.series", now, _TERM) as is_ours:
            return bool(is_ours) and self._record(at, version)

    def _record(self, at: float, version: int) -> bool:
        progress = SeriesProgress.objects.first() or _begin(at)
        end = floor(at - LAG_S, FINE)
        if progress.fine > at + HOUR:
            _turn_back(progress, end)
        for _ in range(_CHUNKS):
            if progress.fine >= end:
                break
            if not self._pass(progress, end, version, at):
                return False
        return True

    def _pass(self, progress: SeriesProgress, end: int, version: int, at: float) -> bool:
        """Records up to an hour. Returns False if another process has recorded meanwhile."""
        begin, until = progress.fine, min(end, progress.fine + _AT_ONCE_S)
        heads = self._heads if self._fine == begin else points.Heads.load()
        self._fine = -1  # until the transaction is committed
        changes = _changes(heads, begin, until, is_last=until == end)
        before = progress.hour
        with transaction.atomic():
            if not SeriesProgress.objects.select_for_update(no_key=True).filter(pk=progress.pk, fine=begin).exists():
                return False
            stored = heads.append(changes)
            _downsample((FINE, MINUTE), progress.minute, floor(until, MINUTE))
            _downsample((MINUTE, HOUR), progress.hour, floor(until, HOUR))
            progress.fine, progress.minute, progress.hour = until, floor(until, MINUTE), floor(until, HOUR)
            if version != progress.version or stored:
                progress.version, progress.version_since = version, floor(at, FINE) + FINE
            progress.save()
            if progress.hour > before:
                points.forget(datetime.fromtimestamp(at, UTC))
        if progress.hour == before:  # otherwise series may be forgotten
            self._heads, self._fine = heads, until
        return True


def recorded_until(progress: SeriesProgress, version: int, at: float) -> int:
    """The end of what is recorded in buckets of 10 s, also by leaving out passes that would find nothing new."""
    return max(progress.fine, floor(at - LAG_S, FINE)) if _is_idle(progress, version, at) else progress.fine


def _is_idle(progress: SeriesProgress, version: int, at: float) -> bool:
    """Whether nothing has changed since the journal was last read, and a whole bucket since then is recorded."""
    is_seen = progress.version == version and progress.fine >= progress.version_since + FINE
    return is_seen and 0 <= at - LAG_S - progress.fine < UNSEEN_S


def _begin(at: float) -> SeriesProgress:
    begun = floor(at - LAG_S, FINE) - FINE
    fields = {"begun": begun, "fine": begun, "minute": floor(begun, MINUTE), "hour": floor(begun, HOUR)}
    return SeriesProgress.objects.get_or_create(only=True, defaults=fields)[0]


@transaction.atomic
def _turn_back(progress: SeriesProgress, end: int) -> None:
    points.erase_from(end)
    progress.fine, progress.begun = end, min(progress.begun, end)
    progress.minute, progress.hour = floor(end, MINUTE), floor(end, HOUR)
    progress.save()


def _changes(heads: points.Heads, begin: int, until: int, *, is_last: bool) -> dict[Key, list[tuple[int, Value]]]:
    """Of what is counted, every change in the time; of what is sampled, the values of now in its last bucket."""
    changes: dict[Key, list[tuple[int, Value]]] = {
        key: list(each) for key, each in recount(runs.between(begin, until), begin, until).items()
    }
    sampled = samples.take(datetime.fromtimestamp(until, UTC)) if is_last else {}
    is_gap = until - begin > GAP_S
    for key in {*heads, *sampled}:
        if is_recountable(key):
            changes.setdefault(key, [(begin, 0.0)])
            continue
        unknown: list[tuple[int, Value]] = [(begin, None)] if is_gap else []
        now: list[tuple[int, Value]] = [(until - FINE, sampled.get(key, absent(key)))] if is_last else []
        changes[key] = [*unknown, *now]
    return changes


def _downsample(steps: tuple[int, int], begin: int, end: int) -> None:
    """Appends the coarser buckets in ``[begin, end)`` that differ from the one before them."""
    fine, coarse = steps
    if begin >= end:
        return
    # One bucket earlier: a series that has not changed since then has the same value in the buckets that are new.
    earlier = begin - coarse
    changed = SeriesPoint.objects.filter(step=fine, at__gte=earlier, at__lt=end).order_by().values("series")
    rows = []
    for key, (pk, before, changes) in points.read(Series.objects.filter(pk__in=changed), fine, earlier, end).items():
        values = coarser(key, changes, before, earlier, end, steps)
        rows += [{"series_id": pk, "step": coarse, "at": at, "value": value} for at, value in values if at >= begin]
    points.store(rows)
