"""Links the audit's lines into a chain, and verifies it: a line that is changed, removed or put in later breaks it.

Lines are written in the transactions of what they are about, many at a time, so they are linked afterwards, in the order in
which they are seen; what stands in the database for a few seconds is not protected yet. The chain begins anew where retention
has deleted its beginning, at the digest of the last deleted line. One process at a time links or deletes: it
locks the chain's row.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import takewhile
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from fleet.changes.repeatable_read import repeatable_read
from fleet.core.security.audit_chain import Chain
from fleet.db import bulk
from fleet.models import AuditChain, AuditEntry

_AT_ONCE = 500
_BATCHES = 20
_BATCHES_FORGOTTEN = 400
"""In one run of retention: what is left is deleted a minute later."""
_SETTLED = timedelta(seconds=2)
_GIVEN_UP = timedelta(minutes=10)
"""After which a line is linked as it is: the process that would have completed it has died."""
FIELDS = (
    "id", "actor", "door", "address", "verb", "request", "cluster", "kind", "namespace", "name", "uid", "outcome", "message",
    "before", "after",
)  # fmt: skip
_Marked = tuple[int, str, int, str]


@dataclass(frozen=True, slots=True)
class Verification:
    lines: int
    """That were compared."""
    last: int
    """The place of the last of them."""
    fault: str = ""
    """Where the chain is broken; empty: it is whole."""
    unlinked: int = 0
    """Lines too young to be in the chain, or left over."""


def link_new(now: datetime) -> int:
    """Adds the lines that are complete to the chain; returns how many."""
    linked = 0
    for _ in range(_BATCHES):
        number = _link_batch(now)
        linked += number
        if number < _AT_ONCE:
            break
    return linked


@transaction.atomic
def _link_batch(now: datetime) -> int:
    chain = _locked()
    done = Q(complete=True, at__lte=now - _SETTLED) | Q(at__lte=now - _GIVEN_UP)
    # Locked, so that a line that is given up is not completed between its digest and the write of it.
    free = AuditEntry.objects.select_for_update(no_key=True, skip_locked=True)
    rows = list(free.filter(done, seq=None).order_by("pk")[:_AT_ONCE])
    for row in rows:
        chain.seq += 1
        row.seq = chain.seq
        chain.digest = row.digest = _chain().link(chain.digest, _line(row))
    if rows:
        bulk.update(rows, ["seq", "digest"])
        _save(chain)
    return len(rows)


def verify() -> Verification:
    """Compares every line that is in the chain, from the oldest kept, as all of them were at one moment."""
    with repeatable_read():
        return _verify()


def _verify() -> Verification:
    chain = AuditChain.objects.first()
    unlinked = AuditEntry.objects.filter(seq=None).count()
    if chain is None:
        fault = "there is no chain, but there are lines of one" if AuditEntry.objects.exclude(seq=None).exists() else ""
        return Verification(0, 0, fault, unlinked)
    if not _chain().is_link(chain.mark, "", {"marked": _marked(chain)}):
        return Verification(0, chain.forgotten_seq, "the row that says where the chain ends was changed", unlinked)
    seq, digest, lines = chain.forgotten_seq, chain.forgotten_digest, 0
    for row in _linked(AuditEntry.objects.filter(seq__lte=chain.seq)):
        if row.seq != seq + 1:
            return Verification(
                lines, seq, f"lines {seq + 1} to {(row.seq or 0) - 1} of the chain are missing", unlinked
            )
        if not _chain().is_link(row.digest, digest, _line(row)):
            return Verification(lines, seq, f"line {row.seq} of the chain (id {row.pk}) was changed", unlinked)
        seq, digest, lines = row.seq, row.digest, lines + 1
    if seq != chain.seq:
        return Verification(lines, seq, f"lines {seq + 1} to {chain.seq} of the chain are missing", unlinked)
    if AuditEntry.objects.filter(seq__gt=chain.seq).exists():
        return Verification(lines, seq, "there are lines behind the end of the chain", unlinked)
    return Verification(lines, seq, "", unlinked)


def forget(until: datetime, delivered: int | None) -> int:
    """Deletes the oldest lines of the chain, up to ``until`` and to the last that every sink has (None: there are no sinks).

    A batch is a transaction: no writer waits long, and a process that stops in between leaves a chain that is whole.
    """
    deleted = 0
    for _ in range(_BATCHES_FORGOTTEN):
        number = _forget_batch(until, delivered)
        deleted += number
        if number < _AT_ONCE:
            break
    return deleted


@transaction.atomic
def _forget_batch(until: datetime, delivered: int | None) -> int:
    chain = _locked()
    last = chain.seq if delivered is None else min(chain.seq, delivered)
    oldest = AuditEntry.objects.filter(seq__gt=chain.forgotten_seq, seq__lte=last).order_by("seq")
    old = list(takewhile(lambda row: row.at < until, oldest.only("at", "seq", "digest")[:_AT_ONCE]))
    if not old:
        return 0
    chain.forgotten_seq, chain.forgotten_digest = old[-1].seq or 0, old[-1].digest
    _save(chain)
    return AuditEntry.objects.filter(pk__in=[row.pk for row in old]).delete()[0]


def after(seq: int, number: int) -> Sequence[AuditEntry]:
    """The lines of the chain behind a place, in order."""
    return list(AuditEntry.objects.filter(seq__gt=seq).order_by("seq")[:number])


def _linked(rows: QuerySet[AuditEntry]) -> Iterator[AuditEntry]:
    seq = 0
    while batch := list(rows.filter(seq__gt=seq).order_by("seq")[:_AT_ONCE]):
        yield from batch
        seq = batch[-1].seq or 0


def _locked() -> AuditChain:
    chain, is_new = AuditChain.objects.select_for_update(no_key=True).get_or_create(pk=1)
    if is_new:
        _save(chain)
    return chain


def _save(chain: AuditChain) -> None:
    chain.mark = _chain().link("", {"marked": _marked(chain)})
    chain.save()


def _marked(chain: AuditChain) -> _Marked:
    return chain.seq, chain.digest, chain.forgotten_seq, chain.forgotten_digest


def _line(row: AuditEntry) -> dict[str, Any]:
    return {"at": row.at.isoformat(), "seq": row.seq, **{field: getattr(row, field) for field in FIELDS}}


def _chain() -> Chain:
    return _of_keys(tuple(settings.CONVOY_ENCRYPTION_KEYS))


@lru_cache(maxsize=4)
def _of_keys(keys: tuple[str, ...]) -> Chain:
    return Chain(keys)
