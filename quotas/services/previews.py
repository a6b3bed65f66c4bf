"""What a change of the quota tree would do, told before anybody saves it. Writes nothing.

An invalid tree is an answer here and not a refusal: its faults come with the node they are about.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from fleet.errors import Forbidden
from quotas import queries, signals
from quotas.core import reading
from quotas.core.effect import Effect
from quotas.core.tree import Tree
from quotas.models import QuotaTree
from quotas.services import edits, effects, scopes


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

    @property
    def saves(self) -> bool:
        return not self.faults and not self.refusals


def of_changes(changes: list[dict[str, Any]], *, by: str, now: datetime) -> Preview:
    row = queries.row()
    return of_manifest(edits.changed(row.manifest if row else {}, changes), by=by, now=now)


def of_manifest(manifest: Mapping[str, Any], *, by: str, now: datetime) -> Preview:
    row, read = queries.row(), reading.read(manifest)
    before = row.manifest if row else {}
    faults = [PlacedFault(*edits.place_of(manifest, each.field), each.detail) for each in read.faults]
    found = Preview(dict(manifest), faults, list(read.warnings), scopes.touched(before, manifest), [])
    if read.tree is None:
        return found
    old = queries.parsed(row) if row else None
    return Preview(
        manifest=found.manifest,
        faults=[],
        warnings=found.warnings,
        touched=found.touched,
        refusals=_refusals(by, row, manifest, (old, read.tree)),
        effect=effects.of(old, read.tree, now),
    )


def _refusals(
    by: str, row: QuotaTree | None, manifest: Mapping[str, Any], trees: tuple[Tree | None, Tree]
) -> list[str]:
    with transaction.atomic():  # whoever is asked writes what the change would make of its own rows
        answers = signals.tree_changing.send(sender=QuotaTree, before=trees[0], after=trees[1])
        transaction.set_rollback(True)
    told = [str(answer) for _, answer in answers if answer]
    try:
        scopes.require_edits(by, row.manifest if row else None, manifest)
    except Forbidden as e:
        told.append(e.message)
    return told
