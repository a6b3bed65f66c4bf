"""Tries works as messages name them: in the lane of their member, and none longer than the others can wait.

A thread holds its place in a lane for one turn. What is left of its message after that waits like any other work, and so
does what finds the lane full.
"""

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic

from django.conf import settings
from django.db.models import F

from fleet.changes import events
from fleet.db import isolation
from jobs.models import Work
from jobs.services.dispatch import dispatcher
from jobs.services.dispatch.dispatcher import Clock
from jobs.services.dispatch.lanes import TOGETHER, Lanes
from jobs.services.lifecycle import works

_TURN_S = 1.0
LANES = Lanes(settings.CONVOY_DISPATCH.member_threads)


@dataclass(slots=True)
class _Batch:
    """Works of one member."""

    ends: list[int] = field(default_factory=list)
    sends: list[int] = field(default_factory=list)
    is_suspect: bool = False


def push(pks: Sequence[int], clock: Clock) -> None:
    """One try at each of the works, in the lanes of their members."""
    for member, batch in _by_member(pks).items():
        if LANES.enter(member, ends=batch.ends, sends=batch.sends, is_suspect=batch.is_suspect):
            _push_in_turn(member, batch, clock)


def _by_member(pks: Sequence[int]) -> dict[int, _Batch]:
    batches: dict[int, _Batch] = defaultdict(_Batch)
    rows = Work.objects.filter(pk__in=pks).order_by("pk")
    for pk, state, member, failing in rows.values_list("pk", "state", "cluster_id", F("cluster__failing_since")):
        batch = batches[member]
        batch.is_suspect = failing is not None
        (batch.ends if state in works.ENDING else batch.sends).append(pk)
    return batches


def _push_in_turn(member: int, batch: _Batch, clock: Clock) -> None:
    began, longest_s = monotonic(), None
    left = deque([*batch.ends, *batch.sends])
    try:
        while left and monotonic() - began < _TURN_S:
            took_s = _try_one(left.popleft(), clock)
            longest_s = max(took_s, longest_s or 0.0) if took_s is not None else longest_s
    finally:
        ready = [*left, *LANES.leave(member, longest_s)]
        for start in range(0, len(ready), TOGETHER):
            events.enqueue("jobs.push", *ready[start : start + TOGETHER])


def _try_one(pk: int, clock: Clock) -> float | None:
    """How long the work kept the thread; None: there was nothing to do."""
    began = monotonic()
    result = isolation.run("jobs.push", [pk], lambda: dispatcher.push(pk, clock))
    return monotonic() - began if result is None or result[0] else None
