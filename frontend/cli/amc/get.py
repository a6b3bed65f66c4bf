"""``kubectl amc get``: prints objects as the clusters have them now, in the columns of the clusters.

Each row has the column CLUSTER. Except for pods, it also has the column ADOPTION, which says whether the fleet created the
object.
"""

from __future__ import annotations

from argparse import Namespace as Arguments
from collections.abc import Callable, Sequence
from functools import partial

from frontend.cli.amc import discovery, follow, formats, run
from frontend.cli.amc.discovery import Resource
from frontend.cli.amc.fleet import Failure, Member, Object
from frontend.cli.amc.formats import Format
from frontend.cli.amc.gather import Gathered
from frontend.cli.amc.rows import Line, Listing, line, rows_of
from frontend.cli.problems import Problem


def get(arguments: Arguments) -> int:
    form = formats.read(arguments.output)
    key = formats.order(arguments.sort_by) if arguments.sort_by else None
    kind, names = split(arguments.kind, arguments.names)
    kinds = list(dict.fromkeys(word for word in kind.split(",") if word))
    if arguments.watch and len(kinds) > 1:
        raise Problem("only one kind can be watched")
    if names and (arguments.selector or arguments.field_selector or arguments.all_namespaces):
        raise Problem("a name cannot be combined with selectors or with --all-namespaces")
    if arguments.watch and (len(names) > 1 or key):
        raise Problem("a watch cannot be sorted: leave out --sort-by" if key else "only one name can be watched")
    this = run.start(arguments)
    selectors = {"labelSelector": arguments.selector, "fieldSelector": arguments.field_selector}
    params = {key: text for key, text in selectors.items() if text}
    if arguments.watch:
        return follow.follow(
            this, kind, names, params, form, headed=not arguments.no_headers, events=arguments.output_watch_events
        )
    params |= {"includeObject": "Object"} if key else {}
    source = rows_of if form.by_server else objects
    query = partial(read, names=names, namespace=this.namespace, params=params, source=source)
    gathered = [answered(this.gather(partial(query, kind=word))) for word in kinds]
    entries = [
        (cluster, listing, item)
        for answer in gathered
        for cluster, listing in answer.answers.items()
        for item in listing.items
    ]
    if key:
        entries.sort(key=lambda entry: key(entry[2].get("object") or entry[2]))
    if form.in_lines:
        lines = [line(form, this.namespace, *entry, named_with_kind=len(kinds) > 1) for entry in entries]
        qualified = [listing.resource.qualified for _, listing, _ in entries]
        _print_tables(this, list(zip(qualified, lines, strict=True)), headed=not arguments.no_headers)
    elif form.name == "name":
        for _, listing, item in entries:
            this.screen.line(f"{listing.resource.shown}/{item['metadata']['name']}")
    elif entries or not (len(names) == 1 or any(answer.failures for answer in gathered)):
        alone = len(names) == 1 and len(kinds) == 1
        _print_objects(this, [(cluster, item) for cluster, _, item in entries], form, alone=alone)
    return conclude(this, gathered, names, quiet=not form.in_lines and form.name != "name")


def answered(gathered: Gathered[Listing]) -> Gathered[Listing]:
    """Raises the failure to show if no cluster answered: before anything is printed of other kinds."""
    if not gathered.answers:
        raise run.worst(gathered)
    return gathered


def split(kind: str, names: list[str]) -> tuple[str, list[str]]:
    """Splits ``pod/a`` into a kind and a name."""
    kind, slash, name = kind.partition("/")
    if slash and names:
        raise Problem("write either KIND/NAME or KIND NAME")
    return kind, [name] if slash else names


def read(
    member: Member,
    *,
    kind: str,
    names: list[str],
    namespace: str,
    params: dict[str, str],
    source: Callable[..., Listing],
) -> Listing:
    """Reads the named objects of a member, or all objects of the kind. ``source`` reads them as rows or as objects."""
    resource = discovery.find(member, kind)
    if not names:
        return source(member, resource, resource.path(namespace), params)
    listing = Listing(resource)
    for name in names:
        try:
            single = source(member, resource, resource.path(namespace, name), params)
        except Failure as e:
            if e.code != 404:
                raise
            listing.missing[name] = e
        else:
            listing.items += single.items
            listing.columns = single.columns
    return listing


def objects(member: Member, resource: Resource, path: str, params: dict[str, str]) -> Listing:
    return Listing(resource, member.items(path, params))


def _print_tables(this: run.Run, lines: list[tuple[str, Line]], *, headed: bool) -> None:
    """Prints one table for each kind and set of columns: clusters of different versions may have different columns."""
    tables: dict[tuple[str, tuple[str, ...]], list[list[str]]] = {}
    for kind, (headers, cells) in lines:
        tables.setdefault((kind, headers), []).append(cells)
    for number, ((_, headers), rows) in enumerate(tables.items()):
        if number:
            this.screen.line()
        this.screen.table(headers, rows, headed=headed)


def _print_objects(this: run.Run, entries: list[tuple[str, Object]], form: Format, *, alone: bool) -> None:
    items = []
    for cluster, item in entries:
        item["metadata"].pop("managedFields", None)
        items.append(formats.annotated(item, cluster) if len(this.clusters) > 1 else item)
    whole = {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}
    this.screen.document(items[0] if alone and len(items) == 1 else whole, form.name, form.render)


def conclude(this: run.Run, kinds: Sequence[Gathered[Listing]], names: list[str], *, quiet: bool = False) -> int:
    """Reports names that no cluster has, and returns the exit code. ``kinds`` are the answers for each kind.

    A name is "not found" only if every cluster that answered lacks it. A cluster that did not answer does not count.
    """
    errors: list[str] = []
    for gathered in kinds:
        problems = gathered.failures.values()
        errors += [str(each) for each in problems if isinstance(each, Failure) and each.code in (401, 403)]
        listings = gathered.answers.values()
        for name in names:
            if all(name in listing.missing for listing in listings):
                errors += {str(listing.missing[name]) for listing in listings}
    for error in dict.fromkeys(errors):
        this.screen.note(error, style="red")
    is_empty = not any(listing.items for gathered in kinds for listing in gathered.answers.values())
    has_failures = any(gathered.failures for gathered in kinds)
    if is_empty and not names and not has_failures and not quiet:
        namespace = f" in {this.namespace} namespace" if this.namespace else ""
        this.screen.note(f"No resources found{namespace} of {', '.join(this.clusters)}.", style="")
    return 1 if errors or (is_empty and has_failures) else 0
