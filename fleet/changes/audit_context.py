"""Who is asking, for as long as their request lasts, and the audit lines of what they change.

A line is written in the transaction of the change itself, by the one function every change goes through
(`fleet.changes.events.announce`). What the fleet does of its own accord has no caller, and leaves no line.
"""

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Model

from fleet.changes import journal
from fleet.db import bulk
from fleet.models import AuditEntry

LINES = 1000
"""Of one request; who changes more is on the first of them."""
_VERBS = {journal.Action.ADDED: "create", journal.Action.MODIFIED: "update", journal.Action.DELETED: "delete"}


@dataclass(slots=True)
class Asking:
    """One request that writes."""

    look: Callable[[Model], dict[str, Any] | None]
    """What the audit shows of an object."""
    actor: Callable[[], str]
    """Known for certain only once the door has looked at the credentials."""
    door: str
    address: str
    request: str
    verb: str = ""
    """As the door calls it; else what happened to the object."""
    about: dict[str, str] = field(default_factory=dict)
    """What a refusal of it is about."""
    before: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What objects looked like before, by uid."""
    lines: list[AuditEntry] = field(default_factory=list)
    """Those that lack what their objects look like afterwards."""
    count: int = 0
    """Of all lines of changes."""

    def line(self, at: datetime, outcome: AuditEntry.Outcome, **about: Any) -> AuditEntry:
        return AuditEntry(**self.fields(at, outcome), **{"verb": self.verb[:32], **about})

    def fields(self, at: datetime, outcome: AuditEntry.Outcome) -> dict[str, Any]:
        """What all lines of the request have in common."""
        return {
            "at": at,
            "actor": self.actor()[:150],
            "door": self.door,
            "address": self.address[:64],
            "request": self.request[:200],
            "outcome": outcome,
        }


current: ContextVar[Asking | None] = ContextVar("asking", default=None)


def changed(changes: Iterable[journal.Change], now: datetime) -> None:
    """Call inside the transaction of the changes."""
    asking = current.get()
    if asking is None:
        return
    common = asking.fields(now, AuditEntry.Outcome.DONE)
    fresh = [
        {
            **common,
            "verb": (asking.verb or _VERBS[change.action])[:32],
            "kind": change.kind,
            "namespace": change.namespace,
            "name": change.name,
            "uid": change.uid,
            "after": after,
            "complete": after is not None,
        }
        for change in list(changes)[: max(0, LINES - asking.count)]
        for after in (None if change.made is None else asking.look(change.made),)
    ]
    asking.count += len(fresh)
    if all(fields["complete"] for fields in fresh):
        bulk.store(AuditEntry, fresh, keyless=True)
    else:
        lines = bulk.insert([AuditEntry(**fields) for fields in fresh])
        asking.lines += [line for line in lines if line.after is None]
