"""The steps of a job's life at which a fault can strike: functions of the product, before and after.

In a forked process each function is wrapped. The wrapper costs one look at shared memory; a process that reaches the armed step
waits there until the fault has been applied, so a kill or a stop hits it exactly there.
"""

import importlib
import mmap
import os
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

WAITS_S = 10.0
"""The engine is gone or stuck: go on."""
PLAN = "jobs.services.scheduling.decisions.apply:apply_plan"
_FUNCTIONS = (
    ("submit", "jobs.services.submission.submit:apply"),
    ("delete", "jobs.services.submission.changes.actions:delete"),
    ("suspend", "jobs.services.submission.changes.actions:suspend"),
    ("plan", PLAN),
    ("claim", "jobs.services.lifecycle.works:claim"),
    ("create", "fleet.member.client:MemberClient.create"),
    ("patch", "fleet.member.client:MemberClient.merge_patch"),
    ("remove", "fleet.member.client:MemberClient.delete"),
    ("sent", "jobs.services.dispatch.dispatcher:_mark_sent"),
    ("gone", "jobs.services.dispatch.dispatcher:_mark_removed"),
    ("pods", "fleet.services.watching.node_pod_sync:NodePodSync.write"),
    ("report", "jobs.services.follow.status:JobEventHandler.on_update"),
    ("leave", "jobs.services.failover.failover:leave"),
    ("evict", "jobs.services.scheduling.decisions.preemption:order_evictions"),
    ("journal", "fleet.changes.journal:append"),
    ("lease", "fleet.services.watching.leases:rebalance"),
    ("look", "fleet.services.clusters.health:check_all"),
    ("sweep", "jobs.services.follow.sweep:run"),
)
_AFTER_ONLY = {"claim", "journal", "evict"}
"""Before them nothing has happened that another step does not have."""
RARE = {function for name, function in _FUNCTIONS if name in ("submit", "delete", "suspend", "leave", "evict", "patch")}
"""Called a few times in a life."""
_BEFORE_ONLY = {"look", "sweep", "patch", "leave"}


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    function: str
    is_after: bool


STEPS = tuple(
    Step(f"{'after' if is_after else 'before'}-{name}", function, is_after)
    for name, function in _FUNCTIONS
    for is_after in (False, True)
    if name not in (_BEFORE_ONLY if is_after else _AFTER_ONLY)
)
NUMBERS = {step.name: number for number, step in enumerate(STEPS, 1)}


class Switchboard:
    """A page of memory that the engine shares with all processes of a world."""

    _AT = {"armed": (0, "<H"), "calls": (4, "<i"), "hit": (8, "<i"), "go": (12, "<i"), "scheduler": (16, "<i")}
    _OFFSETS = 64
    SLOTS = 32

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 4096)

    def arm(self, step: str, calls: int) -> None:
        self._set("hit", 0)
        self._set("go", 0)
        self._set("calls", calls)
        self._set("armed", NUMBERS[step])

    def disarm(self) -> None:
        self._set("armed", 0)
        self._set("go", 1)

    @property
    def hit(self) -> int:
        """The process that waits at the armed step; 0: none has reached it."""
        return self._get("hit")

    @property
    def scheduler(self) -> int:
        """The process that ran the last cycle."""
        return self._get("scheduler")

    def set_offset(self, slot: int, seconds: float) -> None:
        struct.pack_into("<d", self._memory, self._OFFSETS + 8 * slot, seconds)

    def offset(self, slot: int) -> float:
        return float(struct.unpack_from("<d", self._memory, self._OFFSETS + 8 * slot)[0])

    def reach(self, number: int) -> None:
        """Called by a process at a step; returns at once unless the step is armed."""
        if self._get("armed") != number:
            return
        left = self._get("calls") - 1
        self._set("calls", left)
        if left != 0:
            return
        self._set("armed", 0)
        self._set("hit", os.getpid())
        deadline = time.monotonic() + WAITS_S
        while not self._get("go") and time.monotonic() < deadline:
            time.sleep(0.002)

    def note_scheduler(self) -> None:
        self._set("scheduler", os.getpid())

    def _get(self, field: str) -> int:
        at, form = self._AT[field]
        return int(struct.unpack_from(form, self._memory, at)[0])

    def _set(self, field: str, value: int) -> None:
        at, form = self._AT[field]
        struct.pack_into(form, self._memory, at, value)


def install(board: Switchboard) -> None:
    """Wraps the functions of all steps in this process."""
    by_function: dict[str, dict[bool, int]] = {}
    for step in STEPS:
        by_function.setdefault(step.function, {})[step.is_after] = NUMBERS[step.name]
    for function, numbers in by_function.items():
        owner, name = _owner(function)
        note = board.note_scheduler if function == PLAN else None
        setattr(owner, name, _wrapped(getattr(owner, name), board, numbers.get(False), numbers.get(True), note))


def _owner(function: str) -> tuple[Any, str]:
    module, _, path = function.partition(":")
    *classes, name = path.split(".")
    owner: Any = importlib.import_module(module)
    for part in classes:
        owner = getattr(owner, part)
    return owner, name


def _wrapped(
    function: Callable[..., Any],
    board: Switchboard,
    before: int | None,
    after: int | None,
    note: Callable[[], None] | None,
) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if note is not None:
            note()
        if before is not None:
            board.reach(before)
        result = function(*args, **options)
        if after is not None:
            board.reach(after)
        return result

    return call
