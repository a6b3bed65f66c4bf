"""The quota tree comes, changes and goes, and its queues with it; every door ends here.

One transaction writes the tree, its revision, its queues, the journal and the timeline. A change that would strand jobs is
refused by the apps that own them (`quotas.signals.tree_changing`); one of a node that another person leads, by
`quotas.services.scopes`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from random import Random, SystemRandom
from typing import Any

from django.db import IntegrityError, transaction

from fleet.changes import events, journal
from fleet.db import bulk
from fleet.errors import Conflict, InvalidInput, NotFound
from fleet.services.auditing import audit
from quotas import queries, signals
from quotas.core.trees import parsing, window_trees
from quotas.core.trees.naming import queue_name
from quotas.core.trees.tree import Tree
from quotas.models import Queue, QuotaRevision, QuotaTree
from quotas.services import edits, scopes, usage

GENERATIONS = 1000
"""How many are remembered, each whole: a large tree that is edited all day must not fill the database."""
Action = journal.Action


@dataclass(frozen=True, slots=True)
class Applied:
    row: QuotaTree
    action: str
    """created, configured or unchanged."""
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Saving:
    """Who saves, when, and what the history keeps of it."""

    by: str
    now: datetime
    comment: str = ""
    source: str = ""
    """The door: kubectl, rest, admin."""
    expected: int | None = None
    """The generation the person looked at; when it is another by now, the save is refused."""


def apply(manifest: Mapping[str, Any], *, by: str, now: datetime, rng: Random | None = None) -> Applied:
    return save(manifest, Saving(by, now), rng)


def save(manifest: Mapping[str, Any], saving: Saving, rng: Random | None = None) -> Applied:
    """Creates or replaces the tree. Raises `InvalidInput` with every fault, `Conflict` when jobs stand in the way."""
    read = valid(manifest, saving.now)
    try:
        with transaction.atomic():
            row, action = _write(edits.cleaned(manifest), read[0], saving)
            if action != "unchanged":
                _sync_queues(read[0], saving.now, rng or SystemRandom())
            beside = (
                *usage.outside_warnings(read[0], usage.total_outside()),
                *usage.excess_warnings(window_trees.at(read[0], saving.now)),
            )
            beside = (*beside, *usage.budget_warnings(read[0], saving.now))
    except IntegrityError as e:
        raise Conflict("The quota tree was changed at the same moment: apply it again.") from e
    return Applied(row, action, (*read[1], *beside))


def edit(changes: Sequence[edits.Change], saving: Saving) -> Applied:
    """Changes only what is named (`quotas.services.edits`), on top of what is in force now."""
    with transaction.atomic():
        row = _current()
        _check_expected(row, saving)
        return save(edits.changed(row.manifest, changes), saving)


def revert(generation: int, saving: Saving) -> Applied:
    """Saves an earlier generation once more; the history only grows."""
    revision = QuotaRevision.objects.filter(generation=generation).first()
    if revision is None:
        raise NotFound(f"There is no generation {generation} of the quota tree.")
    if revision.manifest is None:
        raise Conflict(f"Generation {generation} is the deletion of the tree: delete it again, or choose another.")
    comment = saving.comment or f"back to generation {generation}"
    return save(revision.manifest, replace(saving, comment=comment))


def valid(manifest: Mapping[str, Any], now: datetime) -> tuple[Tree, tuple[str, ...]]:
    """The tree and its warnings; raises `InvalidInput` with every fault, also of the time when its windows are open."""
    _check_storable(manifest)
    read = parsing.parse_tree(manifest)
    faults = read.faults if read.tree is None else tuple(window_trees.find_faults(manifest, read.tree, now))
    if read.tree is None or faults:
        message = "; ".join(f"{fault.field}: {fault.detail}" for fault in faults[:5])
        more = f" (and {len(faults) - 5} more)" if len(faults) > 5 else ""
        raise InvalidInput(f"the quota tree is not applied: {message}{more}", faults)
    return read.tree, read.warnings


def _check_storable(manifest: Mapping[str, Any]) -> None:
    """Labels and annotations mean nothing here, but they are kept."""
    try:
        text = json.dumps(manifest, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as e:
        raise InvalidInput("the quota tree holds values that JSON cannot carry") from e
    if "\\u0000" in text:
        raise InvalidInput("the quota tree contains a zero byte")


def delete(name: str, *, by: str, now: datetime, source: str = "") -> None:
    """No quota limits anybody afterwards. Refused while jobs run by it, or wait by it and it does not state that they run."""
    with transaction.atomic():
        row = QuotaTree.objects.select_for_update(no_key=True).filter(name=name).first()
        if row is None:
            raise NotFound(f"There is no quota tree {name}.")
        audit.remember_row(row)
        scopes.require_edits(by, row.manifest, None)
        _ask_others(queries.parse_row(row), None, by)
        _take_queues()
        _remember(row.generation + 1, None, Saving(by, now, source=source))
        entry = change(row, Action.DELETED)
        events.announce([entry], now)
        events.record(entry, "QuotaTreeDeleted", f"{by} deleted the quota tree", now)
        _remove(Queue.objects.all(), now)
        row.delete()
        _tell_others()


def change(row: QuotaTree | Queue, action: journal.Action = Action.MODIFIED) -> journal.Change:
    return journal.Change(row.kind, row.namespace, row.name, str(row.uid), action)


def _current() -> QuotaTree:
    row = QuotaTree.objects.select_for_update(no_key=True).first()
    if row is None:
        raise NotFound("There is no quota tree: apply one first.")
    return row


def _check_expected(row: QuotaTree, saving: Saving) -> None:
    if saving.expected is not None and saving.expected != row.generation:
        raise Conflict(
            f"{row.changed_by} changed the quota tree meanwhile: it is at generation {row.generation}, you looked at"
            f" {saving.expected}. Read it again and repeat your change."
        )


def _remember(generation: int, manifest: dict[str, Any] | None, saving: Saving) -> None:
    QuotaRevision.objects.create(
        generation=generation,
        manifest=manifest,
        by=saving.by,
        at=saving.now,
        comment=saving.comment[:500],
        source=saving.source,
    )
    QuotaRevision.objects.filter(generation__lte=generation - GENERATIONS).delete()


def _write(manifest: dict[str, Any], tree: Tree, saving: Saving) -> tuple[QuotaTree, str]:
    row, by, now = QuotaTree.objects.select_for_update(no_key=True).first(), saving.by, saving.now
    name = manifest["metadata"]["name"]
    if row is None:
        scopes.require_edits(by, None, manifest)
        _ask_others(None, tree, by)
        _take_queues()
        row = QuotaTree(namespace=parsing.NAMESPACE, name=name, manifest=manifest, created_at=now, changed_by=by)
        row.generation = queries.last_generation() + 1
        [row.resource_version] = events.announce([change(row, Action.ADDED)], now)
        row.save(force_insert=True)
        _remember(row.generation, manifest, saving)
        events.record(change(row), "QuotaTreeCreated", f"{by} created the quota tree", now)
        return row, "created"
    audit.remember_row(row)
    if row.name != name:
        raise Conflict(
            f"The quota tree is {row.name} and there is one only: apply it under that name, or delete it first."
        )
    _check_expected(row, saving)
    if row.manifest == manifest:
        return row, "unchanged"
    scopes.require_edits(by, row.manifest, manifest)
    _ask_others(queries.parse_row(row), tree, by)
    _take_queues()
    row.manifest, row.changed_by, row.generation = manifest, by, row.generation + 1
    [row.resource_version] = events.announce([change(row)], now)
    row.save(update_fields=["manifest", "changed_by", "generation", "resource_version"])
    _remember(row.generation, manifest, saving)
    events.record(change(row), "QuotaTreeChanged", f"{by} changed the quota tree to generation {row.generation}", now)
    return row, "configured"


def _take_queues() -> None:
    """Before the journal: who holds a row may wait for the journal, never the reverse."""
    list(Queue.objects.select_for_update(no_key=True).order_by("pk").values_list("pk"))


def _sync_queues(tree: Tree, now: datetime, rng: Random) -> None:
    """One queue for each node: those of nodes that stay keep their names."""
    known = {queue.path: queue for queue in Queue.objects.select_for_update(no_key=True)}
    _remove([queue for path, queue in known.items() if path not in tree.by_path], now)
    leaves = {leaf.path for leaf in tree.leaves}
    turned = [queue for path, queue in known.items() if path in tree.by_path and queue.leaf != (path in leaves)]
    for queue in turned:
        queue.leaf = queue.path in leaves
    _announce(turned, Action.MODIFIED, now)
    bulk.update(turned, ["leaf", "resource_version"])
    paths = [node.path for node in tree.nodes if node.path not in known]
    queues = [Queue(name=queue_name(path, rng), path=path, leaf=path in leaves, created_at=now) for path in paths]
    _announce(queues, Action.ADDED, now)
    Queue.objects.bulk_create(queues, batch_size=200)
    _tell_others()


def _remove(queues: Iterable[Queue], now: datetime) -> None:
    gone = list(queues)
    events.announce([change(queue, Action.DELETED) for queue in gone], now)
    Queue.objects.filter(pk__in=[queue.pk for queue in gone]).delete()


def _announce(queues: list[Queue], action: journal.Action, now: datetime) -> None:
    versions = events.announce([change(queue, action) for queue in queues], now)
    for queue, version in zip(queues, versions, strict=True):
        queue.resource_version = version


def _ask_others(before: Tree | None, after: Tree | None, by: str) -> None:
    answers = signals.tree_changing.send(sender=QuotaTree, before=before, after=after, by=by)
    vetoes = [str(answer) for _, answer in answers if answer]
    if vetoes:
        raise Conflict(f"The quota tree cannot be changed to this: {'; '.join(vetoes)}")


def _tell_others() -> None:
    transaction.on_commit(partial(signals.tree_changed.send, sender=QuotaTree), robust=True)
