"""Dispatches the works that a task message names, each in the lane of its member (`lanes`).

A thread keeps its place in a lane for at most one turn. The rest of its works is enqueued again as new messages.
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
from jobs.services.dispatch.lanes import BATCH, Lanes
from jobs.services.lifecycle import works

_TURN_S = 1.0
"""How long a thread goes on dispatching to one member while other members may wait for a thread."""
LANES = Lanes(settings.CONVOY_DISPATCH.member_threads)


@dataclass(slots=True)
class _Batch:
    """Works of one member."""

    ends: list[int] = field(default_factory=list)
    sends: list[int] = field(default_factory=list)
    is_suspect: bool = False


def push(pks: Sequence[int], clock: Clock) -> None:
    """Tries each of the works once, in the lane of its member."""
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
    pending = deque([*batch.ends, *batch.sends])
    try:
        while pending and monotonic() - began < _TURN_S:
            took_s = _try_one(pending.popleft(), clock)
            longest_s = max(took_s, longest_s or 0.0) if took_s is not None else longest_s
    finally:
        ready = [*pending, *LANES.leave(member, longest_s)]
        for start in range(0, len(ready), BATCH):
            events.enqueue("jobs.push", *ready[start : start + BATCH])


def _try_one(pk: int, clock: Clock) -> float | None:
    """Returns how long the dispatch took, in seconds, or None when there was nothing to do."""
    began = monotonic()
    result = isolation.run("jobs.push", [pk], lambda: dispatcher.push(pk, clock))
    return monotonic() - began if result is None or result[0] else None
