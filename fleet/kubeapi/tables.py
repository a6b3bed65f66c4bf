"""The Table form of an answer: what ``kubectl get`` prints. Pure: time is an argument."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from fleet.kubeapi.kinds import Column, Kind, Object

_UNITS = ((86400 * 2, 86400, "d"), (3600 * 3, 3600, "h"), (60 * 10, 60, "m"))


def table(kind: Kind, items: Iterable[Object], metadata: dict[str, Any], now: datetime, *, definitions: bool) -> Object:
    """A watch names its columns in the first event only."""
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
        "rows": [_row(columns, each, now) for each in items],
    }


def shown(kind: Kind) -> tuple[Column, ...]:
    return (*((_NAME,) if kind.names_first else ()), *(kind.columns or (AGE,)))


def _row(columns: tuple[Column, ...], shown: Object, now: datetime) -> Object:
    """With the metadata only: kubectl asks for no more and labels are part of it."""
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": shown["metadata"]}
    return {"cells": [column.read(shown, now) for column in columns], "object": partial}


def age(since: str | None, now: datetime) -> str:
    """``4m44s``, as short as kubectl says it."""
    if not since:
        return "<unknown>"
    seconds = int((now - datetime.strptime(since, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)).total_seconds())
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
