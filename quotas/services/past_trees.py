"""The quota trees that were in force in a time, for reports of it. It knows nothing of who asks.

A revision never changes, and most change no more than an amount. What its leaves were is kept in the process, so that a report
that only says who may see which path reads no manifest again.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any

from fleet.errors import invalid
from quotas import queries
from quotas.services import edits

Leaves = Mapping[str, tuple[str, ...]]
"""The namespaces that each leaf lists, by its path."""
MOST_TREES = 500
"""Changes of the tree that a report of a time reads."""
MOST_LEAVES = 100_000
"""Of all these trees together, one that differs from the tree before it in nothing but amounts left aside."""
MOST_KEPT = 200_000
"""Leaves that a process keeps."""
_CHUNK = 50
_NO_LEAVES: Leaves = {}


@dataclass(frozen=True, slots=True)
class Era:
    """A time in which one tree was in force, until the next begins."""

    since: datetime
    generation: int = 0
    """0: before the first tree."""
    saved_at: datetime | None = None


def eras(begin: datetime, end: datetime, now: datetime, step: timedelta = timedelta(seconds=1)) -> list[Era]:
    """Those of a time, in order; the first begins with it.

    A tree is in force from its own time on also where the one before it has a later time, because the clock was set back; the
    newest one at the latest from now on, also where the time ends now: since when it was is not known. Raises `InvalidInput`
    that names the earliest time, in whole steps, where the trees of the beginning are not kept any more.
    """
    rows = list(queries.revisions().order_by("generation").values_list("generation", "at"))
    known: list[Era] = []
    for generation, at in rows:
        since = min(at, now) if generation == rows[-1][0] else at
        while known and known[-1].since >= since:
            known.pop()
        known.append(Era(since, generation, at))
    if rows and rows[0][0] > 1 and begin < known[0].since:
        earliest = _in_whole_steps(known[0].since, step)
        raise invalid(
            "from", f"is before {earliest:%FT%TZ}: quota trees of that time are not kept, choose a later from"
        )
    before = [era for era in known if era.since <= begin]
    first = Era(begin, before[-1].generation, before[-1].saved_at) if before else Era(begin)
    return [
        first,
        *(era for era in known if begin < era.since < end or begin < era.since == end == now != era.saved_at),
    ]


def _in_whole_steps(at: datetime, step: timedelta) -> datetime:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return epoch - (epoch - at) // step * step


def manifests(of: list[Era]) -> Iterator[tuple[datetime, dict[str, Any] | None]]:
    """The manifest of each era from when on; None: no tree was in force. Raises `InvalidInput` where there are too many."""
    if len(of) > MOST_TREES + 1:
        raise invalid("from", f"has more than {MOST_TREES} changes of the quota tree until to: choose a later from")
    by_generation = dict(_read(era.generation for era in of))
    return ((era.since, by_generation.get(era.generation)) for era in of)


def leaves(of: Iterable[Era]) -> Iterator[tuple[Era, Leaves]]:
    """What the leaves were from each era on that differs in them from the one before. Raises `InvalidInput` for too many."""
    last, trees, size = None, 0, 0
    for era, each in _each(list(of)):
        if each == last:
            continue
        last, trees, size = each, trees + 1, size + len(each)
        if trees > MOST_TREES + 1 or size > MOST_LEAVES:
            most = (
                f"{MOST_TREES} changes of the leaves of the quota tree"
                if size <= MOST_LEAVES
                else f"{MOST_LEAVES} leaves"
            )
            raise invalid("from", f"has more than {most} until to: choose a later from")
        yield era, each


def _each(of: list[Era]) -> Iterator[tuple[Era, Leaves]]:
    for start in range(0, len(of), _CHUNK):
        some = of[start : start + _CHUNK]
        known = {era: _NO_LEAVES if era.saved_at is None else _kept.read(era) for era in some}
        missing = {era.generation: era for era, each in known.items() if each is None}
        for generation, manifest in _read(missing):
            known[missing[generation]] = _kept.keep(missing[generation], _leaves(manifest or {}))
        for era in some:
            if (each := known[era]) is None:
                raise invalid("from", "lies in a time of which the quota trees were just removed: choose a later from")
            yield era, each


def _read(generations: Iterable[int]) -> Iterator[tuple[int, dict[str, Any] | None]]:
    listed = sorted(set(generations) - {0})
    if listed:
        rows = queries.revisions().filter(generation__in=listed).order_by("generation")
        yield from rows.values_list("generation", "manifest").iterator(_CHUNK)


def _leaves(manifest: Mapping[str, Any]) -> Leaves:
    nodes = edits.walk(manifest)
    return {path: tuple(node.get("namespaces") or ()) for path, node in nodes if not node.get("children")}


class Kept:
    """The leaves of revisions that were read, those that are alike once; all go when they are too many."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.forget()

    def forget(self) -> None:
        self._by_revision: dict[tuple[int, datetime | None], Leaves] = {}
        self._last, self._size = _NO_LEAVES, 0

    def read(self, era: Era) -> Leaves | None:
        return self._by_revision.get((era.generation, era.saved_at))

    def keep(self, era: Era, leaves: Leaves) -> Leaves:
        with self._lock:
            if leaves != self._last:
                if self._size + len(leaves) > MOST_KEPT or len(self._by_revision) > 4 * MOST_TREES:
                    self.forget()
                self._last, self._size = leaves, self._size + len(leaves)
            self._by_revision[era.generation, era.saved_at] = self._last
            return self._last


_kept = Kept()


def forget() -> None:
    """Lets the next report read what it needs from the database again."""
    _kept.forget()
