"""Objects of clusters as lines: in the columns their cluster names, or those a person asked for, and the cluster beside."""

from __future__ import annotations

from dataclasses import dataclass, field

from frontend.cli.amc.discovery import Resource
from frontend.cli.amc.fleet import Failure, Member, Object
from frontend.cli.amc.formats import Format

MARKS = ("convoy.dev/job-uid", "app.kubernetes.io/managed-by")
MANAGER = "convoy"
Line = tuple[tuple[str, ...], list[str]]
"""Headers and cells."""


@dataclass(slots=True)
class Found:
    """In one cluster: rows of a table, or whole objects; and which names it has not."""

    resource: Resource
    items: list[Object] = field(default_factory=list)
    columns: list[Object] = field(default_factory=list)
    missing: dict[str, Failure] = field(default_factory=dict)
    version: str = ""
    """From which the changes of a list can be followed."""


def rows_of(member: Member, resource: Resource, path: str, params: dict[str, str]) -> Found:
    table = member.table(path, params)
    version = str((table.get("metadata") or {}).get("resourceVersion") or "")
    return Found(resource, table["rows"], table.get("columnDefinitions") or [], version=version)


def ours(metadata: Object) -> bool:
    """Whether the fleet put it there."""
    labels = metadata.get("labels") or {}
    return MARKS[0] in labels or labels.get(MARKS[1]) == MANAGER


def line(form: Format, namespace: str, cluster: str, found: Found, item: Object) -> Line:
    """Of a row, or of an object where columns were asked for; with its namespace unless that is known."""
    if form.columns:
        (first, *others), (cell, *cells) = form.headers, form.cells(item)
        return (first, "CLUSTER", *others), [cell, cluster, *cells]
    kept = [at for at, each in enumerate(found.columns) if form.name == "wide" or not each.get("priority")]
    first, *others = [str(found.columns[at]["name"]).upper() for at in kept] or ["NAME"]
    spaced, adopts = found.resource.namespaced and not namespace, found.resource.plural != "pods"
    headers = (*["NAMESPACE"] * spaced, first, "CLUSTER", *others, *["ADOPTION"] * adopts)
    cells = ["<none>" if item["cells"][at] is None else str(item["cells"][at]) for at in kept]
    metadata = (item.get("object") or {}).get("metadata") or {}
    space, adopted = [str(metadata.get("namespace", ""))], ["Y" if ours(metadata) else "N"]
    return headers, [*space * spaced, cells[0], cluster, *cells[1:], *adopted * adopts]
