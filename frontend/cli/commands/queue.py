"""``convoy queue ...``: shows the quota tree and waiting jobs, holds and opens queues, and moves jobs."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from frontend.cli import human, queue_units, session
from frontend.cli.client import Api, Item, at
from frontend.cli.commands import get
from frontend.cli.output import bar
from frontend.cli.problems import missing

app = typer.Typer(
    no_args_is_help=True, help="Queues and the quota tree: tree, list, get, hold, drain, stop, open, move."
)
Name = Annotated[str, typer.Argument(metavar="QUEUE", help="A queue's name, or the path of its quota: root/team.")]
Comment = Annotated[str, typer.Option("-m", "--comment", help="The reason, which all users can see.")]


@app.command()
def tree(
    context: typer.Context,
    resource: Annotated[str, typer.Option(help="The resource to show.", show_default="GPUs, else the first")] = "",
    output: get.How = get.Output.TABLE,
) -> None:
    """Show the quota tree: what each team uses, its guarantee (min) and its limit (max)."""
    run = session.session_of(context)
    quota = run.api.get("quota/tree/")
    if output in (get.Output.JSON, get.Output.YAML):
        return run.screen.json(quota) if output is get.Output.JSON else run.screen.yaml(quota)
    resource = resource or _default_resource(quota["nodes"][0]["resources"])
    drawn = list(_drawn(quota["nodes"], "", ""))
    lately = ["LATELY"] if any(node.get("recent_gpu_hours") is not None for _, node in drawn) else []
    share = ["SHARE"] if any(node.get("share") for _, node in drawn) else []
    budget = ["BUDGET"] if any(node.get("budget") for _, node in drawn) else []
    window = ["WINDOW"] if any(node.get("windows") for _, node in drawn) else []
    rows = [
        _node(prefix, node, resource)
        + [_lately(node) for _ in lately]
        + [_share(node) for _ in share]
        + [_budget(node) for _ in budget]
        + [_window(node, resource) for _ in window]
        for prefix, node in drawn
    ]
    heading = "GPUS" if resource == human.GPU else resource.upper()
    run.screen.table(
        [
            "QUOTA",
            heading,
            "USED",
            "MIN",
            "MAX",
            "BORROWED",
            "LENT",
            "WAITS FOR",
            "QUEUE",
            *lately,
            *share,
            *budget,
            *window,
        ],
        rows,
    )
    return run.screen.note(_outside(quota["outside"], quota["outside_jobs"]))


@app.command("list")
def listing(context: typer.Context, output: get.How = get.Output.TABLE) -> None:
    """List the queues."""
    run = session.session_of(context)
    items = run.api.list("queues/")
    if output in (get.Output.JSON, get.Output.YAML):
        return run.screen.json(items) if output is get.Output.JSON else run.screen.yaml(items)
    if output is get.Output.NAME:
        return run.screen.line("\n".join(f"queue/{item['name']}" for item in items))
    now = run.now()
    rows = [[i["name"], i["path"], i["state"], i["state_comment"], human.age(i["created_at"], now)] for i in items]
    return run.screen.table(["NAME", "QUOTA", "STATE", "COMMENT", "AGE"], rows)


@app.command("get")
def one(context: typer.Context, name: Name) -> None:
    """Show the waiting and running jobs of a queue, in order."""
    run = session.session_of(context)
    queue = _queue(run.api, name)
    queue_units.show(run, queue)


@app.command()
def hold(context: typer.Context, name: Name, comment: Comment = "") -> None:
    """Stop admitting jobs of a queue. Running jobs continue."""
    _set(context, name, "hold", comment)


@app.command()
def drain(context: typer.Context, name: Name, comment: Comment = "") -> None:
    """Stop admitting jobs of a queue, and refuse new ones. Running jobs continue."""
    _set(context, name, "drain", comment)


@app.command()
def stop(context: typer.Context, name: Name, comment: Comment = "") -> None:
    """Stop admitting jobs of a queue, and evict its running jobs."""
    _set(context, name, "stop", comment)


@app.command("open")
def reopen(context: typer.Context, name: Name, comment: Comment = "") -> None:
    """Admit jobs of a queue again."""
    _set(context, name, "open", comment)


@app.command()
def move(
    context: typer.Context,
    job: Annotated[str, typer.Argument(help="The name of a waiting job.")],
    queue: Name,
    namespace: session.Namespace = session.DEFAULT_NAMESPACE,
) -> None:
    """Move a waiting job to another queue."""
    run = session.session_of(context)
    item = session.job(run.api, job, namespace)
    unit = run.api.post(at("queueunits", str(item["id"]), "move"), {"queue": _queue(run.api, queue)["path"]})
    run.screen.line(f"{unit['namespace']}/{unit['name']} is number {unit['position'] or '?'} in {unit['queue']}")


def _set(context: typer.Context, name: str, verb: str, comment: str) -> None:
    run = session.session_of(context)
    queue = _queue(run.api, name)
    after = run.api.post(at("queues", queue["name"], verb), {"comment": comment})
    run.screen.line(f"queue/{after['name']} ({after['path']}) is {after['state']}")


def _queue(api: Api, name: str) -> Item:
    params = {"path": name} if "/" in name or name == "root" else {"search": name}
    queues = [queue for queue in api.list("queues/", params) if name in (queue["path"], queue["name"])]
    if not queues:
        raise missing(f"there is no queue {name!r}", "`convoy queue list` lists the queues")
    return queues[0]


def _outside(jobs: Item, choice: str) -> str:
    return (
        f"Outside the tree: {jobs['gpus']} GPUs in use by {jobs['running']} running jobs, {jobs['waiting']} jobs wait"
        f" (outside-jobs: {choice})"
    )


def _default_resource(resources: Item) -> str:
    return human.GPU if human.GPU in resources else next(iter(resources))


def _drawn(nodes: Sequence[Item], parent: str, indent: str) -> Iterator[tuple[str, Item]]:
    """Each node below ``parent`` with its prefix of tree lines, depth first."""
    children = [node for node in nodes if node["parent"] == parent]
    for number, node in enumerate(children, 1):
        last = number == len(children)
        branch = "" if not parent else indent + ("└─ " if last else "├─ ")
        yield branch, node
        yield from _drawn(nodes, node["path"], "" if not parent else indent + ("   " if last else "│  "))


def _lately(node: Item) -> str:
    hours = node.get("recent_gpu_hours")
    return "-" if hours is None else f"{hours:.1f} GPU-h"


def _share(node: Item) -> str:
    """``12.5% borrowed, 40% used of 50%``: what it borrows by weight, and its part of recent use beside that of the weights."""
    share = node.get("share")
    if not share:
        return "-"
    borrowed = "weight 0" if share["borrowed"] is None else f"{share['borrowed']:.1%} borrowed"
    if share["recent"] is None or share["entitled"] is None:
        return borrowed
    return f"{borrowed}, {share['recent']:.0%} used of {share['entitled']:.0%}"


def _budget(node: Item) -> str:
    """``120.5/5000 GPU-h a month, spent 2026-11-28``: what is used, and when it is used up at the present rate."""
    budget = node.get("budget")
    if not budget:
        return "-"
    ends = "spent" if budget["is_spent"] else f"spent {budget['spent_at'][:10]}" if budget["spent_at"] else ""
    used = f"{budget['used_gpu_hours']:.1f}/{budget['gpu_hours']:g} GPU-h a {budget['per']}"
    return f"{used}, {ends}" if ends else used


def _window(node: Item, resource: str) -> str:
    """``min 8 until 2026-11-28 18:00``, or from when on; of the resource shown where the window sets it."""
    if not node.get("windows"):
        return "-"
    window = node["windows"][0]
    amounts = [
        f"{key} {human.amount(name, window[key][name])}"
        for key in ("min", "max")
        for name in window[key]
        if name == resource
    ]
    at = window["end"] if window["is_open"] else window["begin"]
    when = f"{'until' if window['is_open'] else 'from'} {at[:10]} {at[11:16]}"
    return f"{', '.join(amounts)} {when}" if amounts else when


def _node(prefix: str, node: Item, resource: str) -> list[str]:
    amounts: dict[str, Any] = node["resources"].get(resource) or {}

    def cell(key: str) -> str:
        value = amounts.get(key)
        return "-" if value is None else human.amount(resource, value)

    waits = human.amount(resource, amounts["requested"] - amounts["used"]) if amounts else "-"
    drawn = bar(amounts.get("used", 0), 0, amounts.get("max") or amounts.get("min") or 0, 12)
    state = "" if node["queue_state"] == "Open" else node["queue_state"]
    columns = [cell(key) for key in ("used", "min", "max", "borrowed", "lent")]
    return [prefix + node["name"], drawn, *columns, waits, state]
