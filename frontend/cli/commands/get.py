"""``convoy get`` and ``convoy list``: objects as a table, JSON, YAML or names, once or for as long as one watches."""

import time
from enum import StrEnum
from typing import Annotated, Any

import typer

from frontend.cli import job_kinds, kinds, session
from frontend.cli.client import Item
from frontend.cli.kinds import Kind
from frontend.cli.session import DEFAULT_NAMESPACE, Session

WATCH_EVERY_S = 1.0


class Output(StrEnum):
    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


Everywhere = Annotated[bool, typer.Option("-A", "--all-namespaces", help="All namespaces.")]
How = Annotated[Output, typer.Option("-o", "--output", help="How to print it.")]
Watch = Annotated[bool, typer.Option("-w", "--watch", help="Print rows again as they change, until Ctrl-C.")]
Labels = Annotated[str, typer.Option("-l", "--selector", help="Labels, such as team=vision,tier.")]


What = Annotated[
    str,
    typer.Argument(
        metavar="KIND", help="jobs, clusters, nodes, pods, policies, ...", autocompletion=job_kinds.completions
    ),
]


def get(
    context: typer.Context,
    what: What = "jobs",
    name: Annotated[str, typer.Argument(help="Only this one; for pods: the pods of this job.")] = "",
    namespace: session.Namespace = DEFAULT_NAMESPACE,
    everywhere: Everywhere = False,
    output: How = Output.TABLE,
    watch: Watch = False,
    labels: Labels = "",
) -> None:
    """List objects, or show one."""
    run = session.session_of(context)
    kind = job_kinds.find(run.api, what)
    where = "" if everywhere else namespace
    items = _read(run, kind, name, where, labels)
    show(run, kind, items, output, single=bool(name) and kind is not kinds.PODS, everywhere=everywhere)
    if watch:
        _follow(run, kind, items, lambda: _read(run, kind, name, where, labels), output, everywhere)


def listing(
    context: typer.Context,
    namespace: session.Namespace = DEFAULT_NAMESPACE,
    everywhere: Everywhere = False,
    output: How = Output.TABLE,
    watch: Watch = False,
    labels: Labels = "",
) -> None:
    """List jobs: short for `get jobs`."""
    get(context, "jobs", "", namespace, everywhere, output, watch, labels)


def _read(run: Session, kind: Kind, name: str, namespace: str, labels: str) -> list[Item]:
    if kind is kinds.PODS:
        return _pods(run, name, namespace, labels)
    if name:
        return [session.one(run.api, kind, name, namespace)]
    return session.select(run.api, kind, namespace, labels=labels)


def _pods(run: Session, job: str, namespace: str, labels: str) -> list[Item]:
    """Pods are listed job by job; a job that was never placed has none."""
    if job:
        owners = [session.job(run.api, job, namespace)]
    else:
        owners = [each for each in session.select(run.api, kinds.JOBS, namespace, labels=labels) if each.get("attempt")]
    return [pod for owner in owners for pod in run.api.list(session.job_path(owner, "pods"))]


def show(run: Session, kind: Kind, items: list[Item], output: Output, *, single: bool, everywhere: bool) -> None:
    whole: Any = items[0] if single else {"items": items}
    if output is Output.JSON:
        run.screen.json(whole)
    elif output is Output.YAML:
        run.screen.yaml(whole)
    elif output is Output.NAME:
        for item in items:
            run.screen.line(f"{_word(kind, item)}/{item.get('name') or item.get('id')}")
    elif not items:
        run.screen.note(f"No {kind.words[1]} found.")
    else:
        _table(run, kind, items, wide=output is Output.WIDE, everywhere=everywhere)


def _word(kind: Kind, item: Item) -> str:
    return str(item.get("kind") or kind.word).lower() if kind.path in ("jobs", "policies") else kind.word


def _table(run: Session, kind: Kind, items: list[Item], *, wide: bool, everywhere: bool, headed: bool = True) -> None:
    now = run.now()
    headers = list(kind.cells(wide=wide, namespace=everywhere))
    rows = [kind.row(item, now, wide=wide, namespace=everywhere) for item in items]
    run.screen.table(headers, rows, headed=headed)


def _follow(run: Session, kind: Kind, seen: list[Item], read: Any, output: Output, everywhere: bool) -> None:
    """Asks again every second and prints what differs; objects that are gone are named below the table."""
    known = {_identity(item): item for item in seen}
    while True:
        time.sleep(WATCH_EVERY_S)
        fresh = {_identity(item): item for item in read()}
        changed = [item for key, item in fresh.items() if known.get(key) != item]
        if changed and output in (Output.TABLE, Output.WIDE):
            _table(run, kind, changed, wide=output is Output.WIDE, everywhere=everywhere, headed=not known)
        elif changed:
            show(run, kind, changed, output, single=False, everywhere=everywhere)
        for key in known.keys() - fresh.keys():
            run.screen.note(f"{kind.word} {known[key].get('name', '')} is gone")
        known = fresh


def _identity(item: Item) -> str:
    return str(item.get("id") or (item.get("cluster"), item.get("namespace"), item.get("name")))
