"""``kubectl amc get``: objects as the clusters have them now, in the clusters' own columns and the cluster's name beside.

Every row says where it is; all but pods say whether the fleet put them there (ADOPTION).
"""

from __future__ import annotations

from argparse import Namespace as Arguments
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from frontend.cli.amc import discovery, run
from frontend.cli.amc.discovery import Resource
from frontend.cli.amc.fleet import Failure, Member, Object
from frontend.cli.amc.gather import Gathered
from frontend.cli.problems import Problem

MARKS = ("convoy.dev/job-uid", "app.kubernetes.io/managed-by")
MANAGER = "convoy"
CLUSTER_NOTE = "convoy.dev/cluster"
"""Where an object is, in lists of several clusters' objects."""
FORMATS = ("wide", "yaml", "json", "name")


@dataclass(slots=True)
class Found:
    """In one cluster: rows of a table, or whole objects; and which names it has not."""

    resource: Resource
    items: list[Object] = field(default_factory=list)
    columns: list[Object] = field(default_factory=list)
    missing: dict[str, Failure] = field(default_factory=dict)


_ONE_CLUSTER = (
    "kubectl itself can, of one cluster, through the fleet: "
    "kubectl --server SERVER/apis/cluster.karmada.io/v1alpha1/clusters/CLUSTER/proxy get ..."
)


def get(given: Arguments) -> int:
    output = given.output
    if output and output not in FORMATS:
        raise Problem(f"-o {output} is not known: use {', '.join(FORMATS)}", hint=_ONE_CLUSTER)
    if given.watch:
        raise Problem("several clusters are not followed at once", hint=_ONE_CLUSTER)
    kind, names = split(given.kind, given.names)
    if names and (given.selector or given.field_selector or given.all_namespaces):
        raise Problem("a name goes with one namespace and without selectors")
    this = run.start(given)
    selectors = {"labelSelector": given.selector, "fieldSelector": given.field_selector}
    asked = {key: text for key, text in selectors.items() if text}
    read = rows_of if output in ("", "wide") else objects
    shown = this.gather(partial(look, kind=kind, names=names, namespace=this.namespace, asked=asked, read=read))
    if read is rows_of:
        _print_tables(this, shown, wide=output == "wide", headed=not given.no_headers)
    elif output == "name":
        for found in shown.answers.values():
            for item in found.items:
                this.screen.line(f"{found.resource.shown}/{item['metadata']['name']}")
    else:
        _print_objects(this, shown, output, alone=len(names) == 1)
    return conclude(this, shown, names, quiet=output in ("yaml", "json"))


def split(kind: str, names: list[str]) -> tuple[str, list[str]]:
    """``pod/a`` is a kind and a name as well."""
    kind, slash, name = kind.partition("/")
    if slash and names:
        raise Problem("write either KIND/NAME or KIND NAME")
    return kind, [name] if slash else names


def look(
    member: Member, *, kind: str, names: list[str], namespace: str, asked: dict[str, str], read: Callable[..., Found]
) -> Found:
    resource = discovery.find(member, kind)
    if not names:
        return read(member, resource, resource.path(namespace), asked)
    whole = Found(resource)
    for name in names:
        try:
            one = read(member, resource, resource.path(namespace, name), {})
        except Failure as e:
            if e.code != 404:
                raise
            whole.missing[name] = e
        else:
            whole.items += one.items
            whole.columns = one.columns
    return whole


def rows_of(member: Member, resource: Resource, path: str, asked: dict[str, str]) -> Found:
    table = member.table(path, asked)
    return Found(resource, table["rows"], table.get("columnDefinitions") or [])


def objects(member: Member, resource: Resource, path: str, asked: dict[str, str]) -> Found:
    return Found(resource, member.items(path, asked))


def _print_tables(this: run.Run, shown: Gathered[Found], *, wide: bool, headed: bool) -> None:
    """One table a set of columns: clusters of different versions may print a kind differently."""
    tables: dict[tuple[str, ...], list[list[str]]] = {}
    for cluster, found in shown.answers.items():
        kept = [at for at, each in enumerate(found.columns) if wide or not each.get("priority")]
        first, *others = [str(found.columns[at]["name"]).upper() for at in kept] or ["NAME"]
        spaced, adopts = found.resource.namespaced and not this.namespace, found.resource.plural != "pods"
        headers = (*["NAMESPACE"] * spaced, first, "CLUSTER", *others, *["ADOPTION"] * adopts)
        for row in found.items:
            cells = ["<none>" if row["cells"][at] is None else str(row["cells"][at]) for at in kept]
            metadata = (row.get("object") or {}).get("metadata") or {}
            space, adopted = [str(metadata.get("namespace", ""))], ["Y" if ours(metadata) else "N"]
            line = [*space * spaced, cells[0], cluster, *cells[1:], *adopted * adopts]
            tables.setdefault(headers, []).append(line)
    for number, (headers, rows) in enumerate(tables.items()):
        if number:
            this.screen.line()
        this.screen.table(headers, rows, headed=headed)


def ours(metadata: Object) -> bool:
    """Whether the fleet put it there."""
    labels = metadata.get("labels") or {}
    return MARKS[0] in labels or labels.get(MARKS[1]) == MANAGER


def _print_objects(this: run.Run, shown: Gathered[Found], output: str, *, alone: bool) -> None:
    items = []
    for cluster, found in shown.answers.items():
        for item in found.items:
            item["metadata"].pop("managedFields", None)
            if len(this.clusters) > 1:
                item["metadata"].setdefault("annotations", {})[CLUSTER_NOTE] = cluster
            items.append(item)
    if not items and (alone or shown.failures):
        return
    whole = {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}
    document = items[0] if alone and len(items) == 1 else whole
    if output == "json":
        this.screen.json(document)
    else:
        this.screen.yaml(document)


def conclude(this: run.Run, shown: Gathered[Found], names: list[str], *, quiet: bool = False) -> int:
    """Says what was not found, and fails for it; the silence of a cluster is never told as absence."""
    if not shown.answers:
        raise run.worst(shown)
    told = [
        str(problem)
        for problem in shown.failures.values()
        if isinstance(problem, Failure) and problem.code in (401, 403)
    ]
    for name in names:
        if all(name in found.missing for found in shown.answers.values()):
            told += {str(found.missing[name]) for found in shown.answers.values()}
    for line in dict.fromkeys(told):
        this.screen.note(line, style="red")
    nothing = not any(found.items for found in shown.answers.values())
    if nothing and not names and not shown.failures and not quiet:
        where = f" in {this.namespace} namespace" if this.namespace else ""
        this.screen.note(f"No resources found{where} of {', '.join(this.clusters)}.", style="")
    return 1 if told or (nothing and shown.failures) else 0
