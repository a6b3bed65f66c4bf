"""A judge of promises that reads what happened, afterwards: for how long a job waited that its queue's min covered.

It adds up the placements of rows and shares no code with the scheduler. A wait counts only while other queues borrowed: what
they had could have been taken back.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Ran:
    """An attempt of a job, and its wait before it; seconds from any common beginning."""

    queue: str
    cohort: str
    amount: int
    queued_at: float
    placed_at: float
    ended_at: float


def longest_broken(rows: Iterable[Ran], promised: int) -> float:
    """The longest time at a stretch that a job waited within the min of its queue, while a queue of its cohort borrowed."""
    by_cohort: dict[str, list[Ran]] = defaultdict(list)
    for row in rows:
        by_cohort[row.cohort].append(row)
    return max((_longest_in(rows, promised) for rows in by_cohort.values()), default=0.0)


def _longest_in(rows: Sequence[Ran], promised: int) -> float:
    spans = _covered(rows, promised)
    longest = 0.0
    for row in rows:
        known = spans.get((row.queue, row.amount), [])
        first = max(bisect_left(known, (row.queued_at, row.queued_at)) - 1, 0)
        for begins, ends in known[first:]:
            if begins >= row.placed_at:
                break
            longest = max(longest, min(ends, row.placed_at) - max(begins, row.queued_at))
    return longest


def _covered(rows: Sequence[Ran], promised: int) -> Mapping[tuple[str, int], list[Span]]:
    """By queue and size when a job of that size would have been within the min although others borrowed, in order."""
    sizes: dict[str, set[int]] = defaultdict(set)
    for row in rows:
        sizes[row.queue].add(row.amount)
    used: dict[str, int] = dict.fromkeys(sizes, 0)
    spans: dict[tuple[str, int], list[Span]] = defaultdict(list)
    since: dict[tuple[str, int], float] = {}
    borrowers = 0
    for at, changes in _changes(rows):
        before = borrowers
        for queue, amount in changes.items():
            borrowers -= used[queue] > promised
            used[queue] += amount
            borrowers += used[queue] > promised
        for queue in used if bool(before) is not bool(borrowers) else changes:
            for size in sizes[queue]:
                if borrowers and used[queue] + size <= promised:
                    since.setdefault((queue, size), at)
                elif (began := since.pop((queue, size), None)) is not None:
                    spans[queue, size].append((began, at))
    return spans


def _changes(rows: Sequence[Ran]) -> Iterator[tuple[float, dict[str, int]]]:
    """Of the use of each queue, by time."""
    at: dict[float, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in rows:
        at[row.placed_at][row.queue] += row.amount
        at[row.ended_at][row.queue] -= row.amount
    for moment in sorted(at):
        yield moment, dict(at[moment])
