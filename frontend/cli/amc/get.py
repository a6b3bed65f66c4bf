"""``kubectl amc get``: objects as the clusters have them now, in the clusters' own columns and the cluster's name beside.

Every row says where it is; all but pods say whether the fleet put them there (ADOPTION).
"""

from __future__ import annotations

from argparse import Namespace as Arguments
from collections.abc import Callable
from functools import partial

from frontend.cli.amc import discovery, follow, formats, run
from frontend.cli.amc.discovery import Resource
from frontend.cli.amc.fleet import Failure, Member, Object
from frontend.cli.amc.formats import Format
from frontend.cli.amc.gather import Gathered
from frontend.cli.amc.rows import Found, Line, line, rows_of
from frontend.cli.problems import Problem


def get(arguments: Arguments) -> int:
    form = formats.read(arguments.output)
    key = formats.order(arguments.sort_by) if arguments.sort_by else None
    kind, names = split(arguments.kind, arguments.names)
    if names and (arguments.selector or arguments.field_selector or arguments.all_namespaces):
        raise Problem("a name goes with one namespace and without selectors")
    if arguments.watch and (len(names) > 1 or key):
        raise Problem("what is followed is in no order: leave out --sort-by" if key else "one name can be followed")
    this = run.start(arguments)
    selectors = {"labelSelector": arguments.selector, "fieldSelector": arguments.field_selector}
    params = {key: text for key, text in selectors.items() if text}
    if arguments.watch:
        return follow.follow(
            this, kind, names, params, form, headed=not arguments.no_headers, events=arguments.output_watch_events
        )
    params |= {"includeObject": "Object"} if key else {}
    read = rows_of if form.by_server else objects
    shown = this.gather(partial(look, kind=kind, names=names, namespace=this.namespace, params=params, read=read))
    entries = [(cluster, found, item) for cluster, found in shown.answers.items() for item in found.items]
    if key:
        entries.sort(key=lambda each: key(each[2].get("object") or each[2]))
    if form.in_lines:
        _print_tables(this, [line(form, this.namespace, *each) for each in entries], headed=not arguments.no_headers)
    elif form.name == "name":
        for _, found, item in entries:
            this.screen.line(f"{found.resource.shown}/{item['metadata']['name']}")
    elif entries or not (len(names) == 1 or shown.failures):
        _print_objects(this, [(cluster, item) for cluster, _, item in entries], form, alone=len(names) == 1)
    return conclude(this, shown, names, quiet=not form.in_lines and form.name != "name")


def split(kind: str, names: list[str]) -> tuple[str, list[str]]:
    """``pod/a`` is a kind and a name as well."""
    kind, slash, name = kind.partition("/")
    if slash and names:
        raise Problem("write either KIND/NAME or KIND NAME")
    return kind, [name] if slash else names


def look(
    member: Member, *, kind: str, names: list[str], namespace: str, params: dict[str, str], read: Callable[..., Found]
) -> Found:
    resource = discovery.find(member, kind)
    if not names:
        return read(member, resource, resource.path(namespace), params)
    whole = Found(resource)
    for name in names:
        try:
            one = read(member, resource, resource.path(namespace, name), params)
        except Failure as e:
            if e.code != 404:
                raise
            whole.missing[name] = e
        else:
            whole.items += one.items
            whole.columns = one.columns
    return whole


def objects(member: Member, resource: Resource, path: str, params: dict[str, str]) -> Found:
    return Found(resource, member.items(path, params))


def _print_tables(this: run.Run, lines: list[Line], *, headed: bool) -> None:
    """One table a set of columns: clusters of different versions may print a kind differently."""
    tables: dict[tuple[str, ...], list[list[str]]] = {}
    for headers, cells in lines:
        tables.setdefault(headers, []).append(cells)
    for number, (headers, rows) in enumerate(tables.items()):
        if number:
            this.screen.line()
        this.screen.table(headers, rows, headed=headed)


def _print_objects(this: run.Run, entries: list[tuple[str, Object]], form: Format, *, alone: bool) -> None:
    items = []
    for cluster, item in entries:
        item["metadata"].pop("managedFields", None)
        items.append(formats.noted(item, cluster) if len(this.clusters) > 1 else item)
    whole = {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}
    this.screen.document(items[0] if alone and len(items) == 1 else whole, form.name, form.say)


def conclude(this: run.Run, shown: Gathered[Found], names: list[str], *, quiet: bool = False) -> int:
    """Reports what was not found, and fails for it; a cluster that does not answer is never reported as absence."""
    if not shown.answers:
        raise run.worst(shown)
    errors = [
        str(problem)
        for problem in shown.failures.values()
        if isinstance(problem, Failure) and problem.code in (401, 403)
    ]
    for name in names:
        if all(name in found.missing for found in shown.answers.values()):
            errors += {str(found.missing[name]) for found in shown.answers.values()}
    for each in dict.fromkeys(errors):
        this.screen.note(each, style="red")
    nothing = not any(found.items for found in shown.answers.values())
    if nothing and not names and not shown.failures and not quiet:
        where = f" in {this.namespace} namespace" if this.namespace else ""
        this.screen.note(f"No resources found{where} of {', '.join(this.clusters)}.", style="")
    return 1 if errors or (nothing and shown.failures) else 0
