"""Turns objects into tables for kubectl: with the usual columns of built-in kinds, and those of CustomResourceDefinitions.

No I/O; the current time, which ages depend on, is an argument.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

Object = dict[str, Any]
Cell = str | int | float | None
_STEP = re.compile(r"\.([\w-]+)|\[(-?\d+)(:)?\]|\['([^']+)'\]|\[\?\(@\.([\w-]+)==['\"]([^'\"]*)['\"]\)\]", re.ASCII)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of ``kubectl get``. A wide column is shown only with ``-o wide``."""

    name: str
    read: Callable[[Object, datetime], Any]
    type: str = "string"
    """string, integer, number, boolean or date; a date is shown as an age."""
    wide: bool = False
    description: str = ""


def table(
    columns: Sequence[Column],
    objects: Iterable[Object],
    metadata: Object,
    now: datetime,
    *,
    definitions: bool = True,
    include: str = "",
) -> dict[str, Any]:
    """A ``meta.k8s.io/v1`` Table. Only the first event of a watch has ``definitions`` of the columns.

    ``include`` says what a row has besides its cells: ``Object``, ``None``, or by default the object's metadata.
    """
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": dict(metadata),
        "columnDefinitions": [_definition(column) for column in columns] if definitions else [],
        "rows": [_row(columns, shown, now, include) for shown in objects],
    }


def _definition(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": "string" if column.type == "date" else column.type,
        "format": "name" if column.name == "Name" else "",
        "description": column.description,
        "priority": 1 if column.wide else 0,
    }


def _row(columns: Sequence[Column], shown: Object, now: datetime, include: str) -> Object:
    values = [column.read(shown, now) for column in columns]
    row = {
        # most are texts of columns of texts, which are what is shown
        "cells": [
            value if type(value) is str and column.type == "string" else _cell(column, value, now)
            for column, value in zip(columns, values, strict=True)
        ]
    }
    if include == "None":
        return row
    names = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": shown["metadata"]}
    return {**row, "object": shown if include == "Object" else names}


def _cell(column: Column, value: Any, now: datetime) -> Cell:
    if column.type == "date":
        return age(value, now)
    if column.type == "string":
        return "" if value is None else str(value)
    return value if isinstance(value, int | float) else None


def age(moment: object, now: datetime) -> str:
    """How long ago the moment was, as kubectl writes it: ``42s``, ``4m44s``, ``3h``, ``9d``, or ``<unknown>``."""
    try:
        since = datetime.fromisoformat(str(moment))
    except ValueError:
        return "<unknown>"
    since = since if since.tzinfo else since.replace(tzinfo=UTC)
    return duration(max(int((now - since).total_seconds()), 0))


def duration(seconds: int) -> str:
    """A duration in at most two units, like Kubernetes' HumanDuration."""
    for below, unit, letter, part, part_letter in _UNITS:
        if seconds < below:
            whole, rest = seconds // unit, seconds % unit // part if part else 0
            return f"{whole}{letter}{rest}{part_letter}" if rest else f"{whole}{letter}"
    return f"{seconds // _YEAR}y"


_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86_400, 31_536_000
_UNITS = (
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
)
"""For durations below so many seconds: the unit and its letter, and the second unit with its letter, if any."""


def at(path: str) -> Callable[..., Any]:
    """A function that evaluates a definition's ``jsonPath``: names, indices, ``[-1:]`` and ``[?(@.key=="value")]``.

    It returns None if the path does not exist.
    """
    steps = list(_STEP.finditer(path))
    names = [step[1] or step[4] for step in steps]
    if all(names):
        return partial(_follow_names, names)

    def read(value: Any, _now: object = None) -> Any:
        for step in steps:
            value = _follow(value, step)
        return value

    return read


def _follow_names(names: Sequence[str], value: Any, _now: object = None) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _follow(value: Any, step: re.Match[str]) -> Any:
    name, index, _, quoted, key, wanted = step.groups()
    if name or quoted:
        return value.get(name or quoted) if isinstance(value, Mapping) else None
    entries = value if isinstance(value, list) else []
    if index is None:
        return next((e for e in entries if isinstance(e, Mapping) and str(e.get(key)) == wanted), None)
    return entries[int(index)] if -len(entries) <= int(index) < len(entries) else None


_INITIALIZING = "PodInitializing"
"""Why a container waits for init containers to end."""
NAME = Column("Name", at(".metadata.name"))
AGE = Column("Age", at(".metadata.creationTimestamp"), "date")


def columns_of(group: str, plural: str) -> Sequence[Column]:
    """The columns of a built-in kind."""
    return _BUILT_IN.get((group, plural), (NAME, AGE))


def columns_from(printed: Sequence[Mapping[str, Any]]) -> Sequence[Column]:
    """The columns from a definition's ``additionalPrinterColumns``."""
    if not printed:
        return NAME, AGE
    return NAME, *(Column(c["name"], at(c["jsonPath"]), c["type"], bool(c.get("priority"))) for c in printed)


def _states(pod: Object) -> list[Object]:
    states: list[Object] = (pod.get("status") or {}).get("containerStatuses") or []
    return states


def _ready(pod: Object, _now: datetime) -> str:
    return f"{sum(bool(s.get('ready')) for s in _states(pod))}/{len(pod['spec']['containers'])}"


def _pod_status(pod: Object, _now: datetime) -> str:
    status = pod.get("status") or {}
    reason = str(status.get("reason") or status.get("phase") or "Unknown")
    for state in _states(pod):
        current = state.get("state") or {}
        inner = current.get("waiting") or current.get("terminated") or {}
        reason = inner.get("reason") or reason
    return "Terminating" if "deletionTimestamp" in pod["metadata"] else init_word(pod) or reason


def init_word(pod: Object) -> str:
    """The status of a pod whose init containers have not all ended, as kubectl words it; empty for any other pod."""
    return init_container(pod)[0]


def init_container(pod: Object) -> tuple[str, Object]:
    """The word of `init_word`, and the status of the container at which initialization stands."""
    status, wanted = pod.get("status") or {}, (pod.get("spec") or {}).get("initContainers") or []
    statuses = status.get("initContainerStatuses") or []
    is_over = any(
        each.get("type") == "Initialized" and each.get("status") == "True" for each in status.get("conditions") or []
    )
    if is_over or not statuses or any(state.keys() & {"running", "terminated"} for state in map(_state, _states(pod))):
        return "", {}
    sidecars = {each["name"] for each in wanted if each.get("restartPolicy") == "Always"}
    for number, each in enumerate(statuses):
        ended, waits = _state(each).get("terminated"), _state(each).get("waiting") or {}
        if (ended is not None and not ended.get("exitCode")) or (each.get("started") and each["name"] in sidecars):
            continue
        if ended is not None:
            return f"Init:{ended.get('reason') or 'ExitCode:' + str(ended['exitCode'])}", each
        if waits.get("reason", _INITIALIZING) != _INITIALIZING:
            return f"Init:{waits['reason']}", each
        return f"Init:{number}/{len(wanted)}", each
    return f"Init:{len(statuses)}/{len(wanted)}" if len(statuses) < len(wanted) else "", {}


def _state(container: Object) -> Object:
    state: Object = container.get("state") or {}
    return state


def _restarts(pod: Object, _now: datetime) -> int:
    return sum(int(s.get("restartCount") or 0) for s in _states(pod))


def _node_status(node: Object, _now: datetime) -> str:
    ready = at('.status.conditions[?(@.type=="Ready")].status')(node)
    readiness = {"True": "Ready", "False": "NotReady"}.get(str(ready), "Unknown" if ready is None else "NotReady")
    return f"{readiness},SchedulingDisabled" if node.get("spec", {}).get("unschedulable") else readiness


def _completions(job: Object, _now: datetime) -> str:
    wanted = job["spec"].get("completions")
    return f"{at('.status.succeeded')(job) or 0}/{job['spec'].get('parallelism', 1) if wanted is None else wanted}"


def _regarding(event: Object) -> str:
    regarding = event["involvedObject"]
    return f"{regarding.get('kind', '')}/{regarding.get('name', '')}".lower()


_BUILT_IN: dict[tuple[str, str], tuple[Column, ...]] = {
    ("", "pods"): (
        NAME,
        Column("Ready", _ready),
        Column("Status", _pod_status),
        Column("Restarts", _restarts, "integer"),
        AGE,
        Column("IP", lambda pod, _now: at(".status.podIP")(pod) or "<none>", wide=True),
        Column("Node", lambda pod, _now: at(".spec.nodeName")(pod) or "<none>", wide=True),
    ),
    ("", "nodes"): (
        NAME,
        Column("Status", _node_status),
        AGE,
        Column("Version", at(".status.nodeInfo.kubeletVersion")),
    ),
    ("", "namespaces"): (NAME, Column("Status", at(".status.phase")), AGE),
    ("batch", "jobs"): (NAME, Column("Completions", _completions), AGE),
    ("", "configmaps"): (NAME, Column("Data", lambda shown, _now: len(shown.get("data") or {}), "integer"), AGE),
    ("", "events"): (
        Column("Last Seen", lambda e, _now: e.get("lastTimestamp") or e["metadata"].get("creationTimestamp"), "date"),
        *(Column("Type", at(".type")), Column("Reason", at(".reason"))),
        Column("Object", lambda e, _now: _regarding(e)),
        Column("Message", at(".message")),
    ),
    ("apiextensions.k8s.io", "customresourcedefinitions"): (
        NAME,
        Column("Created At", at(".metadata.creationTimestamp")),
    ),
}
