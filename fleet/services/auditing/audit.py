"""The audit of writes: what each looked like before and after, those that were refused, and how long all that is kept.

Doors say who is asking with `asking`; what changes meanwhile is written down by `fleet.changes.audit_context`. A request that
changes nothing and is not refused leaves nothing; those that are refused are written singly only up to a rate, and beyond it
counted (`refusal_counts`). What is new is written down as it is made; before and after of a change when the request is over, so
a process that dies in between leaves the line without them.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from typing import Any

from django.apps import apps
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.utils import timezone

from fleet.changes.audit_context import Asking, current
from fleet.db import bulk
from fleet.errors import ConvoyError
from fleet.kube.requests.status import KubeError
from fleet.limits.buckets import Buckets
from fleet.models import AuditEntry
from fleet.models.encrypted import EncryptedJSONField
from fleet.services.auditing import refusal_counts
from fleet.services.auditing.refusal_counts import OTHERS, Sort

LARGEST = 32 * 1024
"""Of one side of a line, as JSON."""
BLOT = "(not shown)"
SINGLY = Buckets(0.2, 60)
"""Refused writes of one user that have a line each: 60 at once, 12 a minute in the long run."""
BEYOND = "refused or failed, beyond those that have a line each"
_DULL = frozenset(
    {
        "id",
        "uid",
        "resource_version",
        "created_at",
        "last_heartbeat",
        "looked_at",
        "synced_at",
        "watched_since",
        "watched_until",
        "digest",
    }
)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_TELLING = ("password", "passwd", "token", "secret", "credential", "apikey", "api_key", "access_key", "private_key")
"""In the name of an environment variable: its value is not for the audit."""

_WIDTHS = {"verb": 32, "cluster": 253, "kind": 63, "namespace": 63, "name": 253, "uid": 64}

Document = dict[str, Any]
Outcome = AuditEntry.Outcome


@contextmanager
def asking(actor: Callable[[], str], *, door: str, address: str, request: str, verb: str = "") -> Iterator[Asking]:
    """Everything announced inside is this person's doing; a refusal that leaves it is written down and goes on."""
    this = Asking(snapshot_row, actor, door, address, request, verb)
    token = current.set(this)
    try:
        yield this
    except ConvoyError as e:
        refused(this, e.status, e.message)
        raise
    except KubeError as e:
        refused(this, e.code, e.message)
        raise
    finally:
        current.reset(token)
        _complete(this)


def refused(this: Asking, status: int, message: str, **about: str) -> None:
    """Record a refused or failed write of a known user; attempts of unknown callers are left to the log.

    Beyond so many of one user, they are counted in one line for each door and minute.
    """
    if not (actor := this.actor()[:150]):
        return None
    if SINGLY.take(actor):
        return refusal_counts.count(Sort(this.door, "write", "", OTHERS, "write/writes", BEYOND, actor=actor))
    outcome = Outcome.FAILED if status >= 500 else Outcome.REFUSED
    fields = _short({**this.about, **about})
    this.line(timezone.now(), outcome, message=message[:500], **fields).save(force_insert=True)
    return None


def done(this: Asking, *, message: str = "", **about: str) -> None:
    """A write that no object of the fleet shows: one to a member, a token, a grant."""
    line = this.line(timezone.now(), Outcome.DONE, message=message[:500], **_short({**this.about, **about}))
    line.save(force_insert=True)


def note(
    actor: str, *, door: str, address: str, request: str, verb: str, refused: str = "", message: str = "", **about: str
) -> None:
    """A line of an act that announces nothing: a sign-in, a read. Call before the act is of any use to the caller."""
    this = Asking(snapshot_row, lambda: actor, door, address, request, verb)
    outcome = Outcome.REFUSED if refused else Outcome.DONE
    line = this.line(timezone.now(), outcome, message=(refused or message)[:500], **_short(about))
    line.save(force_insert=True)


def begun(this: Asking, *, after: Document | None = None, **about: str) -> AuditEntry:
    """A line that is written before the act, so that no act goes without one; `ended` says how it ended.

    ``after`` is what else there is to say of the act.
    """
    line = this.line(timezone.now(), Outcome.FAILED, after=_capped(after), **_short({**this.about, **about}))
    line.message, line.complete = "how it ended is not known", False
    line.save(force_insert=True)
    return line


def ended(line: AuditEntry, outcome: AuditEntry.Outcome, message: str = "") -> None:
    rows = AuditEntry.objects.filter(pk=line.pk, seq=None)
    rows.update(outcome=outcome, message=message[:500], complete=True)


def done_changing(this: Asking, before: Document | None, after: Document | None, now: datetime, **about: str) -> None:
    """The same, of something that is not journaled, with what it was and is now."""
    was, now_is = map(_capped, difference(before, after))
    this.line(now, Outcome.DONE, before=was, after=now_is, **_short({**this.about, **about})).save(force_insert=True)


def remember_row(row: models.Model) -> None:
    """Remember what a row looked like before this request changed it; the first call for a row counts."""
    this = current.get()
    if this is not None and (uid := str(getattr(row, "uid", ""))) and uid not in this.before:
        this.before[uid] = document(row)


def seen_named(kind: str, namespace: str, name: str) -> None:
    """The same, of the object of that name, if there is one."""
    for model in _journaled():
        names = {field.name for field in model._meta.concrete_fields}
        if "name" not in names or ("kind" not in names and getattr(model, "kind", model.__name__) != kind):
            continue
        known = {"kind": kind, "namespace": namespace, "name": name}
        row = model._default_manager.filter(**{key: text for key, text in known.items() if key in names}).first()
        if row is not None:
            return remember_row(row)
    return None


def document(row: models.Model) -> Document:
    """A row as the audit shows it: nothing that is encrypted at rest, nothing that changes by itself."""
    return blotted(_text(row))


def snapshot_row(row: models.Model) -> Document | None:
    """The same, as long as a line may be."""
    text = _text(row)
    whole = blotted(text)
    return whole if len(text) <= LARGEST // 2 else _capped(whole)  # blots at most double it


def _text(row: models.Model) -> str:
    hidden = row.get_deferred_fields()
    return json.dumps(
        {name: getattr(row, at) for name, at in _shown(type(row)) if at not in hidden}, cls=DjangoJSONEncoder
    )


@cache
def _shown(model: type[models.Model]) -> list[tuple[str, str]]:
    fields = model._meta.concrete_fields
    shown = (field for field in fields if field.name not in _DULL and not isinstance(field, EncryptedJSONField))
    return [(field.name, field.attname) for field in shown]


def blotted(text: str) -> Document:
    """What the JSON says, without what kubectl last applied, and the values of telling environment variables."""
    return dict(json.loads(text, object_hook=_blot))


def _blot(item: Document) -> Document:
    item.pop(_LAST_APPLIED, None)
    if isinstance(item.get("value"), str) and _tells(item.get("name")):
        item["value"] = BLOT
    return item


def difference(before: Document | None, after: Document | None) -> tuple[Document | None, Document | None]:
    """Of two looks at an object, the fields of both that differ."""
    if before is None or after is None:
        return before, after
    differ = [key for key in before if key in after and before[key] != after[key]]
    return {key: before[key] for key in differ}, {key: after[key] for key in differ}


def _tells(name: object) -> bool:
    return isinstance(name, str) and any(word in name.lower() for word in _TELLING)


def _short(about: Mapping[str, str]) -> dict[str, str]:
    """Names come from URLs here and may be of any length."""
    return {key: text[: _WIDTHS[key]] for key, text in about.items()}


def _complete(this: Asking) -> None:
    """What the lines' objects look like now, by a few queries a kind of row. Lines of a change taken back are gone already."""
    if not this.lines:
        return
    now = _documents({line.uid for line in this.lines})
    for line in this.lines:
        line.before, line.after = map(_capped, difference(this.before.get(line.uid), now.get(line.uid)))
        line.complete = True
    # A line that was given up meanwhile is in the chain as it was.
    bulk.update(this.lines, ["before", "after", "complete"], while_null="seq")


def _documents(uids: set[str]) -> dict[str, Document]:
    documents: dict[str, Document] = {}
    for model in _journaled():
        missing = sorted(uids - documents.keys())
        for start in range(0, len(missing), 500):
            rows = model._default_manager.filter(uid__in=missing[start : start + 500])
            documents |= {str(row.uid): document(row) for row in rows}  # type: ignore[attr-defined]  # every audited row has a uid
    return documents


@cache
def _journaled() -> tuple[type[models.Model], ...]:
    """The models of objects the journal speaks of."""
    fields = {model: {field.name for field in model._meta.concrete_fields} for model in apps.get_models()}
    return tuple(model for model, names in fields.items() if {"uid", "resource_version"} <= names)


def _capped(side: Document | None) -> Document | None:
    if side is None or len(json.dumps(side)) <= LARGEST:
        return side
    return {key: each if len(json.dumps(each)) <= LARGEST // 8 else "(too large to keep)" for key, each in side.items()}
