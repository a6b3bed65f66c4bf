"""The Table form of an answer: what ``kubectl get`` prints. Pure: time is an argument."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from fleet.kubeapi.kinds import Column, Kind, Object

_UNITS = ((86400 * 2, 86400, "d"), (3600 * 3, 3600, "h"), (60 * 10, 60, "m"))


def table(
    kind: Kind,
    items: Iterable[Object],
    metadata: dict[str, Any],
    now: datetime,
    *,
    definitions: bool,
    include: str = "",
) -> Object:
    """A watch names its columns in the first event only; ``include`` is Object, None, or Metadata for what kubectl needs."""
    columns = shown(kind)
    heads = [
        {
            "name": column.name,
            "type": "string",
            "format": "name" if column.name == "Name" else "",
            "description": column.description,
            "priority": 1 if column.wide else 0,
        }
        for column in columns
    ]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": heads if definitions else [],
        "rows": [_row(columns, each, now, include) for each in items],
    }


def shown(kind: Kind) -> tuple[Column, ...]:
    return (*((_NAME,) if kind.names_first else ()), *(kind.columns or (AGE,)))


def _row(columns: tuple[Column, ...], shown: Object, now: datetime, include: str) -> Object:
    row: Object = {"cells": [column.read(shown, now) for column in columns]}
    if include == "Object":
        return {**row, "object": shown}
    if include == "None":
        return row
    metadata = {key: value for key, value in shown["metadata"].items() if key not in _HEAVY}
    return {**row, "object": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}}


_HEAVY = frozenset({"annotations", "managedFields"})
"""What of the metadata no column and no option of kubectl reads."""


def age(since: str | None, now: datetime) -> str:
    """``4m44s``, as short as kubectl says it."""
    if not since:
        return "<unknown>"
    seconds = int((now - datetime.fromisoformat(since)).total_seconds())
    return short(max(seconds, 0))


def short(seconds: int) -> str:
    if seconds < 120:
        return f"{seconds}s"
    if seconds < 600:
        return f"{seconds // 60}m{seconds % 60}s" if seconds % 60 else f"{seconds // 60}m"
    unit, letter = next((unit, letter) for above, unit, letter in _UNITS if seconds >= above)
    return f"{seconds // unit}{letter}"
    raise AssertionError(seconds)


_NAME = Column("Name", lambda shown, now: shown["metadata"]["name"], description="Name of the object")
AGE = Column(
    "Age", lambda shown, now: age(shown["metadata"].get("creationTimestamp"), now), description="Time it exists"
)
