"""Objects as the rows of a table, as an API server prints them for kubectl: the usual columns of built-in kinds, and those a
definition names for its own. Pure: the moment that ages are counted to is an argument.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

Object = Mapping[str, Any]
Cell = str | int | float | None
_STEP = re.compile(r"\.([\w-]+)|\[(-?\d+)(:)?\]|\['([^']+)'\]|\[\?\(@\.([\w-]+)==['\"]([^'\"]*)['\"]\)\]", re.ASCII)


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    read: Callable[[Object], Any]
    type: str = "string"
    """string, integer, number, boolean or date; a date is shown as an age."""
    priority: int = 0
    """Above 0: shown only when asked for wide."""


def table(
    columns: Sequence[Column], found: Iterable[Object], metadata: Object, now: datetime, *, whole: bool = False
) -> dict[str, Any]:
    """A ``meta.k8s.io/v1`` Table; each row carries the object's metadata, or the whole object."""
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": dict(metadata),
        "columnDefinitions": [_definition(column) for column in columns],
        "rows": [_row(columns, each, now, whole) for each in found],
    }


def _definition(column: Column) -> dict[str, Any]:
    kind = "string" if column.type == "date" else column.type
    form = "name" if column.name == "Name" else ""
    return {"name": column.name, "type": kind, "format": form, "description": "", "priority": column.priority}


def _row(columns: Sequence[Column], found: Object, now: datetime, whole: bool) -> dict[str, Any]:
    kind = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    shown = found if whole else {**kind, "metadata": found["metadata"]}
    return {"cells": [_cell(c, found, now) for c in columns], "object": shown}


def _cell(column: Column, found: Object, now: datetime) -> Cell:
    value = column.read(found)
    if column.type == "date":
        return age(value, now)
    if column.type == "string":
        return "" if value is None else str(value)
    return value if isinstance(value, int | float) else None


def age(moment: Any, now: datetime) -> str:
    """``42s``, ``5m``, ``3h``, ``9d``: how long ago; ``<unknown>`` when the timestamp is malformed."""
    try:
        seconds = int((now - datetime.strptime(str(moment), "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)).total_seconds())
    except ValueError:
        return "<unknown>"
    for size, unit, most in ((1, "s", 120), (60, "m", 180), (3600, "h", 48)):
        if seconds < most * size:
            return f"{max(seconds, 0) // size}{unit}"
    return f"{seconds // 86400}d"


def at(path: str) -> Callable[[Object], Any]:
    """What a definition's ``jsonPath`` finds: names, indices, ``[-1:]`` and ``[?(@.key=="value")]``; None where nothing is."""
    steps = list(_STEP.finditer(path))

    def read(found: Any) -> Any:
        for step in steps:
            found = _follow(found, step)
        return found

    return read


def _follow(found: Any, step: re.Match[str]) -> Any:
    name, index, _, quoted, key, wanted = step.groups()
    if name or quoted:
        return found.get(name or quoted) if isinstance(found, Mapping) else None
    entries = found if isinstance(found, list) else []
    if index is None:
        return next((e for e in entries if isinstance(e, Mapping) and str(e.get(key)) == wanted), None)
    return entries[int(index)] if -len(entries) <= int(index) < len(entries) else None


NAME = Column("Name", at(".metadata.name"))
AGE = Column("Age", at(".metadata.creationTimestamp"), "date")


def columns_of(group: str, plural: str) -> Sequence[Column]:
    """Of a built-in kind."""
    return _BUILT_IN.get((group, plural), (NAME, AGE))


def columns_from(printed: Sequence[Object]) -> Sequence[Column]:
    """Of a definition's ``additionalPrinterColumns``."""
    if not printed:
        return NAME, AGE
    return NAME, *(Column(c["name"], at(c["jsonPath"]), c["type"], int(c.get("priority") or 0)) for c in printed)


def _states(pod: Object) -> list[Object]:
    found: list[Object] = (pod.get("status") or {}).get("containerStatuses") or []
    return found


def _ready(pod: Object) -> str:
    return f"{sum(bool(s.get('ready')) for s in _states(pod))}/{len(pod['spec']['containers'])}"


def _pod_status(pod: Object) -> str:
    status = pod.get("status") or {}
    reason = str(status.get("reason") or status.get("phase") or "Unknown")
    for state in _states(pod):
        current = state.get("state") or {}
        inner = current.get("waiting") or current.get("terminated") or {}
        reason = inner.get("reason") or reason
    return "Terminating" if "deletionTimestamp" in pod["metadata"] else reason


def _restarts(pod: Object) -> int:
    return sum(int(s.get("restartCount") or 0) for s in _states(pod))


def _node_status(node: Object) -> str:
    ready = at('.status.conditions[?(@.type=="Ready")].status')(node)
    readiness = {"True": "Ready", "False": "NotReady"}.get(str(ready), "Unknown" if ready is None else "NotReady")
    return f"{readiness},SchedulingDisabled" if node.get("spec", {}).get("unschedulable") else readiness


def _completions(job: Object) -> str:
    wanted = job["spec"].get("completions")
    return f"{at('.status.succeeded')(job) or 0}/{job['spec'].get('parallelism', 1) if wanted is None else wanted}"


_BUILT_IN: dict[tuple[str, str], tuple[Column, ...]] = {
    ("", "pods"): (
        NAME,
        Column("Ready", _ready),
        Column("Status", _pod_status),
        Column("Restarts", _restarts, "integer"),
        AGE,
        Column("IP", lambda pod: at(".status.podIP")(pod) or "<none>", priority=1),
        Column("Node", lambda pod: at(".spec.nodeName")(pod) or "<none>", priority=1),
    ),
    ("", "nodes"): (
        NAME,
        Column("Status", _node_status),
        AGE,
        Column("Version", at(".status.nodeInfo.kubeletVersion")),
    ),
    ("", "namespaces"): (NAME, Column("Status", at(".status.phase")), AGE),
    ("batch", "jobs"): (NAME, Column("Completions", _completions), AGE),
    ("", "configmaps"): (NAME, Column("Data", lambda found: len(found.get("data") or {}), "integer"), AGE),
    ("", "events"): (
        Column("Last Seen", lambda e: e.get("lastTimestamp") or e["metadata"].get("creationTimestamp"), "date"),
        *(Column("Type", at(".type")), Column("Reason", at(".reason"))),
        Column("Object", lambda e: "{kind}/{name}".format(**{"kind": "", "name": "", **e["involvedObject"]}).lower()),
        Column("Message", at(".message")),
    ),
    ("apiextensions.k8s.io", "customresourcedefinitions"): (
        NAME,
        Column("Created At", at(".metadata.creationTimestamp")),
    ),
}
