"""Makes the buckets of a coarser step from those of a finer one, and buckets from stored changes."""

from collections.abc import Iterator, Mapping, Sequence

from jobs.core.series.catalogue import COUNTS, Key, Metric

Value = float | None
"""None: not known."""


def expand(changes: Mapping[int, Value], before: Value, begin: int, end: int, step: int) -> Iterator[Value]:
    """The value of every bucket in ``[begin, end)``: that of the last change, at first ``before``."""
    value = before
    for at in range(begin, end, step):
        value = changes.get(at, value)
        yield value


def coarser(
    key: Key, changes: Mapping[int, Value], before: Value, begin: int, end: int, steps: tuple[int, int]
) -> list[tuple[int, Value]]:
    """The buckets of the coarser of the steps that differ from the one before; the first is there always."""
    fine, coarse = steps
    values = list(expand(changes, before, begin, end, fine))
    each = coarse // fine
    merged = [(begin + i * fine, _merged(key.metric, values[i : i + each])) for i in range(0, len(values), each)]
    return [entry for i, entry in enumerate(merged) if not i or entry[1] != merged[i - 1][1]]


def _merged(metric: Metric, values: Sequence[Value]) -> Value:
    known = [value for value in values if value is not None]
    if not known:
        return None
    total = round(sum(known), 6)
    return total if metric in COUNTS else round(total / len(known), 6)
