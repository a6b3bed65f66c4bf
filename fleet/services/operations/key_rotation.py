"""Encrypts every secret at rest again with the first key, so that older keys can be taken away.

Goes through the rows in batches, each a transaction, and passes over what the first key reads already: a rotation that stops
half way is simply started again, and both keys read everything meanwhile. Start it when every process has the new key in
front, or a process that has not would write with the old one behind its back.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from cryptography.fernet import Fernet, InvalidToken
from django.apps import apps
from django.conf import settings
from django.db import models, transaction
from django.db.models import F, TextField
from django.db.models.functions import Cast

from fleet.changes.audit_context import current
from fleet.errors import Conflict, invalid
from fleet.models.encrypted import EncryptedJSONField, cipher
from fleet.services.auditing import audit

AT_ONCE = 200
_RAW = "raw_"
_Column = tuple[type[models.Model], str]


@dataclass(frozen=True, slots=True)
class Batch:
    looked_at: int
    encrypted: int
    """Of these, the rows that another key than the first had been used for."""
    next: str
    """Where the next batch begins; empty: all rows have been looked at."""


def rotate_batch(begin: str = "") -> Batch:
    """The rows of one column from a place on, in the order of their keys; begin with none. Raises `Conflict` for a row that
    no key reads: taking keys away would not be what is wrong with it, and is not made worse.
    """
    columns = list(_columns())
    at, after = _place(begin, columns)
    if at == len(columns):
        return Batch(0, 0, "")
    rows, encrypted = _encrypt(*columns[at], after)
    if len(rows) == AT_ONCE:
        return Batch(len(rows), encrypted, f"{at}.{rows[-1]}")
    following = f"{at + 1}.0" if at + 1 < len(columns) else ""
    if not following:
        _note()
    return Batch(len(rows), encrypted, following)


@transaction.atomic
def _encrypt(model: type[models.Model], field: str, after: int) -> tuple[Sequence[int], int]:
    """The keys of the rows, and how many of them were encrypted again. Locked, so that no newer value is overwritten."""
    raw = {f"{_RAW}{field}": Cast(F(field), TextField())}
    locked = model._default_manager.select_for_update(no_key=True, of=("self",)).order_by("pk")
    rows = list(locked.filter(pk__gt=after).annotate(**raw).values_list("pk", f"{_RAW}{field}")[:AT_ONCE])
    stale = {pk: text for pk, text in rows if text is not None and not _is_of_first_key(text)}
    for pk, text in stale.items():
        model._default_manager.filter(pk=pk).update(**{field: _plain(model, pk, text)})
    return [pk for pk, _ in rows], len(stale)


def _is_of_first_key(text: str) -> bool:
    try:
        Fernet(settings.CONVOY_ENCRYPTION_KEYS[0]).decrypt(text.encode())
    except InvalidToken:
        return False
    return True


def _plain(model: type[models.Model], pk: int, text: str) -> Any:
    try:
        return json.loads(cipher().decrypt(text.encode()))
    except InvalidToken as e:
        raise Conflict(
            f"no key reads {model.__name__} {pk}: put the key it was written with into the list, and start again"
        ) from e


def _columns() -> Iterator[_Column]:
    """Of all encrypted columns, in a fixed order."""
    for model in sorted(apps.get_models(), key=lambda model: model._meta.label):
        for field in model._meta.concrete_fields:
            if isinstance(field, EncryptedJSONField):
                yield model, field.name


def _place(begin: str, columns: Sequence[_Column]) -> tuple[int, int]:
    column, _, after = (begin or "0.0").partition(".")
    if not (column.isascii() and column.isdigit() and after.isascii() and after.isdigit()) or len(begin) > 24:
        raise invalid("begin", "must be the `next` of the batch before, or empty")
    return min(int(column), len(columns)), min(int(after), 2**62)


def _note() -> None:
    if (asking := current.get()) is not None:
        audit.done(asking, verb="rotate", kind="EncryptionKeys", name="all secrets are of the first key")
