"""Opens and closes the windows of the quota tree: writes to the queues which are open, by the clock.

From there the scheduler, the doors and previews read them, so that all decide by the same amounts. A pass only compares what is
written with what the tree says of now: one that is late or doubled changes nothing, and one that is missed is made up for.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from fleet.changes import events
from fleet.db import prepared
from fleet.services.operations import clock_steps
from quotas import queries
from quotas.core.trees import parsing, window_trees, windows
from quotas.core.trees.amounts import format_amount
from quotas.core.trees.tree import Tree
from quotas.core.trees.windows import Opening
from quotas.models import Queue, QuotaTree
from quotas.services.trees import change


def review(now: datetime) -> int:
    """Brings the queues up to date of which a window has opened or closed; returns how many changed.

    Shortly after a step of the clock forward the former time counts: jobs that borrow what a window promises are stopped.
    """
    row = queries.tree_row()
    tree = queries.parse_row(row) if row else None
    openings: list[Opening] = []
    if row and tree and tree.has_windows:
        openings = _valid(row, windows.open_at(tree.nodes, clock_steps.elapsed(now).deadlines_until))
    wanted = _as_stored(openings)
    known = {queue.path: queue for queue in _OPEN.objects()}
    paths = [
        path for path in wanted.keys() | known.keys() if wanted.get(path) != getattr(known.get(path), "window", None)
    ]
    return sum(_write(path, wanted.get(path), tree, now) for path in sorted(paths))


_OPEN = prepared.Rows(lambda _: Queue.objects.filter(window__isnull=False))


def exist() -> bool:
    """Whether a window may open or close by the clock alone."""
    tree = queries.tree()
    return tree is not None and tree.has_windows


def _valid(row: QuotaTree, openings: Sequence[Opening]) -> list[Opening]:
    """Those that make a valid tree together. Saving checks a year ahead: what was not foreseen then does not open."""
    if not parsing.parse_tree(window_trees.overlaid(row.manifest, openings)).faults:
        return list(openings)
    valid: list[Opening] = []
    for opening in openings:
        if not parsing.parse_tree(window_trees.overlaid(row.manifest, [*valid, opening])).faults:
            valid.append(opening)
    return valid


def _as_stored(openings: Sequence[Opening]) -> dict[str, dict[str, Any]]:
    stored = {}
    for path, (least, most) in windows.amounts(openings).items():
        own = [each for each in openings if each.path == path]
        begin, until = max(each.begin for each in own), min(each.end for each in own)
        stored[path] = {"min": least, "max": most, "begin": begin.isoformat(), "until": until.isoformat()}
    return stored


def _write(path: str, window: dict[str, Any] | None, tree: Tree | None, now: datetime) -> bool:
    with transaction.atomic():
        row = Queue.objects.select_for_update(no_key=True).filter(path=path).first()
        if row is None or row.window == window:
            return False
        [version] = events.announce([change(row)], now)
        Queue.objects.filter(pk=row.pk).update(window=window, resource_version=version)
        if window is None:
            events.record(change(row), "WindowClosed", f"the window of {path} is over: its own min and max hold", now)
        else:
            events.record(change(row), "WindowOpened", _message(path, window), now)
    return True


def _message(path: str, window: dict[str, Any]) -> str:
    amounts = [
        f"{key} {format_amount(resource, amount)}" for key in ("min", "max") for resource, amount in window[key].items()
    ]
    return f"a window of {path} is open until {window['until']}: {', '.join(amounts)}"
