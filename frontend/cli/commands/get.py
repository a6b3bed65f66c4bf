"""``convoy get`` and ``convoy list``: prints objects as a table, JSON, YAML or names, once or with ``--watch``."""

import time
from enum import StrEnum
from typing import Annotated, Any

import typer

from frontend.cli import job_kinds, kinds, queue_units, session
from frontend.cli.arena import jobs as arena
from frontend.cli.arena import reading
from frontend.cli.client import Item, at
from frontend.cli.kinds import Kind
from frontend.cli.problems import Exit, Problem, usage
from frontend.cli.session import DEFAULT_NAMESPACE, Session

WATCH_EVERY_S = 1.0


class Output(StrEnum):
    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


Everywhere = Annotated[bool, typer.Option("-A", "--all-namespaces", help="All namespaces.")]
How = Annotated[Output, typer.Option("-o", "--output", help="The output format.")]
Watch = Annotated[bool, typer.Option("-w", "--watch", help="Then print rows that change, until Ctrl-C.")]
Labels = Annotated[str, typer.Option("-l", "--selector", help="Select by labels, such as team=vision,tier.")]


Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KIND [NAME]]|JOB",
        help="jobs, clusters, nodes, pods, policies, ...; one of them by its name (pods: of a job); or a job's name.",
        autocompletion=job_kinds.completions,
    ),
]


def get(
    context: typer.Context,
    words: Words = None,
    namespace: session.Namespace = DEFAULT_NAMESPACE,
    everywhere: Everywhere = False,
    output: How = Output.TABLE,
    watch: Watch = False,
    labels: Labels = "",
    trainer: session.Type = "",
) -> None:
    """List objects, or show one. With --type, or with the name of a job alone: that job and its pods, as arena shows it."""
    run = session.session_of(context)
    if len(words or []) > 2:
        raise usage(f"cannot show {' '.join(words or [])!r}", "for example: convoy get pytorchjob llama")
    what, name = [*(words or ["jobs"]), ""][:2]
    if trainer:
        _job(run, trainer, what, name, namespace, output)
        return
    try:
        kind = job_kinds.find(run.api, what)
    except Problem:
        if name or labels or not _is_job(run, what, namespace):
            raise
        _job(run, "", what, "", namespace, output)
        return
    if kind is kinds.QUEUES and name and output is Output.WIDE:
        queue_units.show(run, session.one(run.api, kind, name, namespace))
        return
    where = "" if everywhere else namespace
    items = _read(run, kind, name, where, labels)
    show(run, kind, items, output, single=bool(name) and kind not in kinds.OF_ONE, everywhere=everywhere)
    if watch:
        _follow(run, kind, items, lambda: _read(run, kind, name, where, labels), output, everywhere)


def _is_job(run: Session, name: str, namespace: str) -> bool:
    try:
        return bool(session.select(run.api, kinds.JOBS, namespace, name=name))
    except Problem:
        return False


def _job(run: Session, trainer: str, name: str, surplus: str, namespace: str, output: Output) -> None:
    """Shows one job by its name, with its pods."""
    if surplus:
        raise usage("the kind of the job is named twice", f"for example: convoy get {surplus} --type {trainer}")
    form = None if output is Output.TABLE else arena.Form(output.value)
    arena.print_job(run, reading.one(run.api, name, namespace, trainer), form, events=False, devices=False)


def listing(
    context: typer.Context,
    namespace: session.Namespace = DEFAULT_NAMESPACE,
    everywhere: Everywhere = False,
    output: How = Output.TABLE,
    watch: Watch = False,
    labels: Labels = "",
) -> None:
    """List jobs: short for `get jobs`."""
    get(context, ["jobs"], namespace, everywhere, output, watch, labels)


def _read(run: Session, kind: Kind, name: str, namespace: str, labels: str) -> list[Item]:
    if kind is kinds.PODS:
        return _pods(run, name, namespace, labels)
    if kind is kinds.ADDONS:
        return _addons(run, name)
    if kind is kinds.SPOT:
        return _reclaims(run, name)
    if name:
        return [session.one(run.api, kind, name, namespace)]
    return session.select(run.api, kind, namespace, labels=labels)


def _pods(run: Session, job: str, namespace: str, labels: str) -> list[Item]:
    """The pods of one job, or of all jobs that were ever placed. The API lists pods by job."""
    if job:
        owners = [session.job(run.api, job, namespace)]
    else:
        owners = [item for item in session.select(run.api, kinds.JOBS, namespace, labels=labels) if item.get("attempt")]
    return [pod for owner in owners for pod in run.api.list(session.job_path(owner, "pods"))]


def _addons(run: Session, cluster: str) -> list[Item]:
    """The add-ons of one cluster, or of all. Each cluster is asked by itself."""
    names = [cluster] if cluster else [str(item["name"]) for item in run.api.list("clusters/")]
    return [addon for name in names for addon in run.api.get(at("clusters", name, "addons"))]


def _reclaims(run: Session, cluster: str) -> list[Item]:
    """The reclaimed nodes of one cluster, or of all, the latest first; the pools are said beside them."""
    names = [cluster] if cluster else [str(item["name"]) for item in run.api.list("clusters/")]
    rows: list[Item] = []
    for name in names:
        try:
            spot = run.api.get(at("clusters", name, "spot"))
        except Problem as e:
            if cluster or e.exit_code is not Exit.NOT_FOUND:
                raise
            continue  # it was detached since
        for pool in spot["pools"]:
            run.screen.note(
                f"{name}: pool {pool['name']} has {pool['ready']}/{pool['nodes']} nodes ready, {pool['gpus']} GPUs"
            )
        rows += [{**row, "cluster": name} for row in spot["reclaims"]]
    return sorted(rows, key=lambda row: str(row["at"]), reverse=True)


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
    """Reads the objects every second, prints those that have changed, and names those that were deleted."""
    printed = {_identity(item): item for item in seen}
    while True:
        time.sleep(WATCH_EVERY_S)
        current = {_identity(item): item for item in read()}
        changed = [item for key, item in current.items() if printed.get(key) != item]
        if changed and output in (Output.TABLE, Output.WIDE):
            _table(run, kind, changed, wide=output is Output.WIDE, everywhere=everywhere, headed=not printed)
        elif changed:
            show(run, kind, changed, output, single=False, everywhere=everywhere)
        for key in printed.keys() - current.keys():
            run.screen.note(f"{kind.word} {printed[key].get('name', '')} was deleted")
        printed = current


def _identity(item: Item) -> str:
    return str(item.get("id") or (item.get("cluster"), item.get("namespace"), item.get("name")))
