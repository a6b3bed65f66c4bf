"""Turns objects of clusters into lines: in the columns of their cluster or in custom columns, with the column CLUSTER."""

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
class Listing:
    """What one cluster answered: table rows or complete objects, and the requested names that it does not have."""

    resource: Resource
    items: list[Object] = field(default_factory=list)
    columns: list[Object] = field(default_factory=list)
    missing: dict[str, Failure] = field(default_factory=dict)
    version: str = ""
    """The resource version from which the list can be watched."""


def rows_of(member: Member, resource: Resource, path: str, params: dict[str, str]) -> Listing:
    table = member.table(path, params)
    version = str((table.get("metadata") or {}).get("resourceVersion") or "")
    return Listing(resource, table["rows"], table.get("columnDefinitions") or [], version=version)


def ours(metadata: Object) -> bool:
    """Whether the fleet created the object."""
    labels = metadata.get("labels") or {}
    return MARKS[0] in labels or labels.get(MARKS[1]) == MANAGER


def line(
    form: Format, namespace: str, cluster: str, listing: Listing, item: Object, *, named_with_kind: bool = False
) -> Line:
    """Headers and cells of a table row; with custom columns, of an object. A list of all namespaces has their column.

    ``named_with_kind``: as ``pod/a``, where objects of several kinds are printed.
    """
    if form.columns:
        (first, *others), (cell, *cells) = form.headers, form.cells(item)
        return (first, "CLUSTER", *others), [cell, cluster, *cells]
    shown = [at for at, column in enumerate(listing.columns) if form.name == "wide" or not column.get("priority")]
    first, *others = [str(listing.columns[at]["name"]).upper() for at in shown] or ["NAME"]
    has_namespace, has_adoption = listing.resource.namespaced and not namespace, listing.resource.plural != "pods"
    headers = (*["NAMESPACE"] * has_namespace, first, "CLUSTER", *others, *["ADOPTION"] * has_adoption)
    cells = ["<none>" if item["cells"][at] is None else str(item["cells"][at]) for at in shown]
    metadata = (item.get("object") or {}).get("metadata") or {}
    space, adopted = [str(metadata.get("namespace", ""))], ["Y" if ours(metadata) else "N"]
    cells[0] = f"{listing.resource.shown}/{cells[0]}" if named_with_kind else cells[0]
    return headers, [*space * has_namespace, cells[0], cluster, *cells[1:], *adopted * has_adoption]
