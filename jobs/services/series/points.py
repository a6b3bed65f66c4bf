"""Stored points: the last value of each series, what is read of a time, what is appended, and what is forgotten."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery
from structlog import get_logger

from fleet.db import bulk
from fleet.services.operations import clock_steps
from jobs.core.series.catalogue import FINE, HOUR, MINUTE, Dimension, Key, Metric, absent, floor
from jobs.core.series.downsampling import Value
from jobs.models import Series, SeriesPoint

log = get_logger(__name__)
_SAYS_NOTHING = Q(value=None) | Q(
    ~Q(series__dimension=Dimension.MODEL),
    value=0,
    series__metric__in=[metric for metric in Metric if absent(Key(metric, Dimension.FLEET)) == 0],
)
"""Points before which and after which a series without any point has the same value."""


class Heads(dict[Key, tuple[int, Value]]):
    """Key and last value in buckets of 10 s of every series."""

    @classmethod
    def load(cls) -> "Heads":
        rows = Series.objects.annotate(
            has=Exists(_of_series(FINE)), head=Subquery(_of_series(FINE).values("value")[:1])
        )
        heads = cls()
        for pk, metric, dimension, name, has, head in rows.values_list(
            "pk", "metric", "dimension", "name", "has", "head"
        ):
            key = Key(Metric(metric), Dimension(dimension), name)
            heads[key] = (pk, head if has else absent(key))
        return heads

    def value(self, key: Key) -> Value:
        return self[key][1] if key in self else absent(key)

    def append(self, changes: Mapping[Key, Iterable[tuple[int, Value]]]) -> int:
        """Stores those of the changes that are changes; returns how many."""
        new = {key: _kept(self.value(key), each) for key, each in changes.items()}
        new = {key: each for key, each in new.items() if each}
        self._create([key for key in new if key not in self])
        rows = []
        for key, each in new.items():
            if key in self:
                pk = self[key][0]
                rows += [{"series_id": pk, "step": FINE, "at": at, "value": value} for at, value in each]
                self[key] = (pk, each[-1][1])
        store(rows)
        return len(rows)

    def _create(self, keys: list[Key]) -> None:
        room = max(0, settings.CONVOY_SERIES.most - len(self))
        if len(keys) > room:
            log.warning("series not recorded", most=settings.CONVOY_SERIES.most, left_out=len(keys) - room)
        rows = [key._asdict() for key in sorted(keys)[:room]]
        for key, pk in zip(sorted(keys), bulk.store(Series, rows), strict=False):
            self[key] = (pk, absent(key))


def _kept(head: Value, changes: Iterable[tuple[int, Value]]) -> list[tuple[int, Value]]:
    kept = []
    for at, value in changes:
        if value != head:
            kept.append((at, value))
            head = value
    return kept


def _of_series(step: int) -> QuerySet[SeriesPoint]:
    return SeriesPoint.objects.filter(series=OuterRef("pk"), step=step).order_by("-at")


def read(rows: QuerySet[Series], step: int, begin: int, end: int) -> dict[Key, tuple[int, Value, dict[int, Value]]]:
    """Of each of the series: its primary key, its value before ``begin``, and its changes in the time. Two queries."""
    earlier = _of_series(step).filter(at__lt=begin)
    annotated = rows.annotate(has=Exists(earlier), head=Subquery(earlier.values("value")[:1]))
    fields = ("pk", "metric", "dimension", "name", "has", "head")
    known: dict[int, tuple[Key, Value]] = {}
    for pk, metric, dimension, name, has, head in annotated.values_list(*fields):
        key = Key(Metric(metric), Dimension(dimension), name)
        known[pk] = key, head if has else absent(key)
    changes: dict[int, dict[int, Value]] = defaultdict(dict)
    points = SeriesPoint.objects.filter(series__in=list(known), step=step, at__gte=begin, at__lt=end)
    for pk, at, value in points.values_list("series", "at", "value"):
        changes[pk][at] = value
    return {key: (pk, head, changes[pk]) for pk, (key, head) in known.items()}


def store(rows: Sequence[Mapping[str, object]]) -> None:
    bulk.store(SeriesPoint, rows, keyless=True)


def forget(now: datetime) -> None:
    """Deletes points beyond their retention, but for the last of each series before it, which says what was then."""
    keep = settings.CONVOY_SERIES
    for step, kept_s in ((FINE, keep.fine_s), (MINUTE, keep.minute_s), (HOUR, keep.hour_s)):
        before = floor(clock_steps.forgettable_before(timedelta(seconds=kept_s), now).timestamp(), HOUR)
        old = SeriesPoint.objects.filter(step=step, at__lt=before)
        later = SeriesPoint.objects.filter(series=OuterRef("series"), step=step, at__gt=OuterRef("at"), at__lte=before)
        old.filter(Exists(later)).delete()
        SeriesPoint.objects.filter(pk__in=old.filter(_SAYS_NOTHING).values("pk")).delete()
    Series.objects.filter(~Exists(SeriesPoint.objects.filter(series=OuterRef("pk")))).delete()


def erase_from(at: int) -> None:
    """Points of a time that has not come yet: they are of a clock that was wrong."""
    SeriesPoint.objects.filter(at__gt=at - F("step")).delete()
