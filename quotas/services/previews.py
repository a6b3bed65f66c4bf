"""Shows what a change of the quota tree would do before it is saved. Writes nothing.

An invalid tree is an answer here and not a refusal: its faults come with the node they are about.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from fleet.changes import dry_runs
from fleet.errors import Forbidden
from fleet.services.authorization import access
from quotas import queries, signals
from quotas.core.impact import Effect
from quotas.core.queues.job_names import HIDDEN
from quotas.core.trees import parsing, window_trees, windows
from quotas.core.trees.tree import Tree
from quotas.models import QuotaTree
from quotas.services import edits, impact, scopes, usage

_WINDOWS_PREVIEWED = 3
_NAMED = 3


@dataclass(frozen=True, slots=True)
class PlacedFault:
    """``path`` is the node, empty for what is about none; ``field`` is within the node, as in ``min.cpu``."""

    path: str
    field: str
    detail: str


@dataclass(frozen=True, slots=True)
class Preview:
    manifest: dict[str, Any]
    faults: list[PlacedFault]
    warnings: list[str]
    touched: list[str]
    """The paths of nodes that differ from what is in force."""
    refusals: list[str]
    """Why it could not be saved although it is valid: whose it is, and which jobs stand in the way."""
    effect: Effect = Effect()
    outside: usage.Outside = usage.Outside()
    """Jobs that would belong to no leaf."""

    @property
    def saves(self) -> bool:
        return not self.faults and not self.refusals


def of_changes(changes: list[dict[str, Any]], *, by: str, now: datetime | None) -> Preview:
    row = queries.tree_row()
    return of_manifest(edits.changed(row.manifest if row else {}, changes), by=by, now=now)


def of_manifest(manifest: Mapping[str, Any], *, by: str, now: datetime | None) -> Preview:
    """Without ``now`` the jobs are not asked: quick, and silent about them."""
    row, read = queries.tree_row(), parsing.parse_tree(manifest)
    later = window_trees.find_faults(manifest, read.tree, now) if read.tree and now else []
    before = row.manifest if row else {}
    faults = [PlacedFault(*edits.place_of(manifest, each.field), each.detail) for each in (*read.faults, *later)]
    touched, refusals = scopes.touched_paths(before, manifest), _forbidden(by, row, manifest)
    preview = Preview(dict(manifest), faults, list(read.warnings), touched, refusals)
    if read.tree is None or now is None or later:
        return preview
    old = queries.parse_row(row) if row else None
    vetoes, outside = _ask_receivers(old, read.tree, by)
    return replace(
        preview,
        refusals=[*vetoes, *refusals],
        warnings=[
            *read.warnings,
            *usage.outside_warnings(read.tree, outside),
            *usage.budget_warnings(read.tree, now),
            *_window_warnings(read.tree, by, now),
        ],
        effect=impact.effect_of_change(
            window_trees.at(old, now) if old else None, window_trees.at(read.tree, now), now
        ).shown_to(access.sees_named(by)),
        outside=outside,
    )


def _window_warnings(tree: Tree, by: str, now: datetime) -> list[str]:
    """What the next windows would do to the jobs of now, if these still run when they begin."""
    warnings = []
    for begin, openings in windows.ahead(tree.nodes, now)[:_WINDOWS_PREVIEWED]:
        names = " and ".join(dict.fromkeys(each.path for each in openings if each.begin == begin))
        then = window_trees.with_amounts(tree, windows.amounts(openings))
        effect = impact.effect_of_change(window_trees.at(tree, now), then, begin).shown_to(access.sees_named(by))
        stopped = [line.job or HIDDEN for line in effect.reclaimed]
        named = f": {', '.join(stopped[:_NAMED])}{' and more' if len(stopped) > _NAMED else ''}" if stopped else ""
        warnings.append(
            f"when the window of {names} begins at {begin:%F %T} UTC, {len(stopped)} of the jobs that run now would be evicted"
            f" for jobs that wait now{named}"
        )
    return warnings


def _ask_receivers(old: Tree | None, new: Tree, by: str) -> tuple[list[str], usage.Outside]:
    with dry_runs.taken_back():  # receivers write what the change would make of their own rows
        answers = signals.tree_changing.send(sender=QuotaTree, before=old, after=new, by=by)
        outside = usage.total_outside()
    return [str(answer) for _, answer in answers if answer], outside


def _forbidden(by: str, row: QuotaTree | None, manifest: Mapping[str, Any]) -> list[str]:
    try:
        scopes.require_edits(by, row.manifest if row else None, edits.cleaned(manifest))
    except Forbidden as e:
        return [e.message]
    return []
