"""``convoy ckpt list``, ``ranks``, ``stacks``: what a job's processes say in its logs; ``goodput``: where its time went."""

import csv
import sys
from typing import Annotated

import typer

from frontend.cli import human, session
from frontend.cli.client import Item
from frontend.cli.commands.describe import kind_and_name
from frontend.cli.problems import usage
from frontend.cli.session import DEFAULT_NAMESPACE, Session

ckpt = typer.Typer(help="The checkpoints that a job's runtime reports.", no_args_is_help=True)
Words = Annotated[list[str], typer.Argument(metavar="[KIND] NAME", help="A job's name, or its kind and its name.")]


@ckpt.command("list")
def checkpoints(context: typer.Context, words: Words, namespace: session.Namespace = DEFAULT_NAMESPACE) -> None:
    """List a job's checkpoints, oldest first: step, where it was saved, how that ended, and how long it took."""
    run = session.session_of(context)
    runtime = runtime_of(run, words, namespace)
    now = run.now()
    rows = [
        [
            str(each["step"]) if each["step"] is not None else human.NONE,
            each["tier"] or human.NONE,
            _checkpoint_state(each),
            human.NONE if each["seconds"] is None else f"{each['seconds']:g}",
            _shards(each),
            human.age(each["at"], now) if each["at"] else human.NONE,
            each["pod"],
        ]
        for each in runtime["checkpoints"]
    ]
    _warn(run, runtime)
    run.screen.table(["STEP", "TIER", "STATE", "SECONDS", "SHARDS", "AGE", "POD"], rows)


def ranks(context: typer.Context, words: Words, namespace: session.Namespace = DEFAULT_NAMESPACE) -> None:
    """List a job's pods with their nodes and the ranks that the runtime gave them."""
    run = session.session_of(context)
    runtime = runtime_of(run, words, namespace)
    rows = [
        [
            each["pod"],
            each["node"] or human.NONE,
            ",".join(map(str, each["ranks"])) or human.NONE,
            _count(each["world_size"]),
            _count(each["restarts"]),
        ]
        for each in runtime["ranks"]
    ]
    _warn(run, runtime)
    run.screen.table(["POD", "NODE", "RANKS", "WORLD", "RESTARTS"], rows)


def stacks(
    context: typer.Context,
    words: Words,
    namespace: session.Namespace = DEFAULT_NAMESPACE,
    output: Annotated[str, typer.Option("-o", "--output", help="text, json or yaml.")] = "text",
) -> None:
    """Merge the stacks of a job's ranks: function@file:line@ranks|others, callers first."""
    run = session.session_of(context)
    if output not in ("text", "json", "yaml"):
        raise usage(f"there is no output {output!r}", "one of: text, json, yaml")
    answer: Item = run.api.get(session.job_path(session.one(run.api, *kind_and_name(run, words), namespace), "stacks"))
    if output == "json":
        return run.screen.json(answer)
    if output == "yaml":
        return run.screen.yaml(answer)
    return _show(run, answer)


def _show(run: Session, answer: Item) -> None:
    for warning in answer["warnings"]:
        run.screen.note(warning)
    for line in answer["lines"]:
        run.screen.line(f"{'  ' * line['depth']}{line['text']}")
    if without := answer["pods_without"]:
        run.screen.note(f"no stacks in the logs of {', '.join(without[:5])}" + _more(len(without) - 5))
    if not answer["lines"]:
        run.screen.note(
            "send SIGUSR1 to processes that called faulthandler.register, or run `py-spy dump` into the log"
        )
    if answer["suspects"]:
        run.screen.note(f"rank {answer['suspects']} is not where most of the others wait", style="yellow")


def _more(count: int) -> str:
    return f" and {count} more" if count > 0 else ""


_PARTS = ("productive", "checkpoint", "lost", "unknown", "hung", "restart", "waiting")


def goodput(
    context: typer.Context,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[KIND] [NAME]", help="A job; without one: all jobs, see --by.")
    ] = None,
    by: Annotated[
        str, typer.Option(help="class, node, job, team, queue, cluster, model or fleet: what cost most is first.")
    ] = "class",
    since: Annotated[str, typer.Option("--from", metavar="TIME", help="ISO 8601. Default: 7 days before --to.")] = "",
    until: Annotated[str, typer.Option("--to", metavar="TIME", help="ISO 8601. Default: now.")] = "",
    namespace: session.Namespace = DEFAULT_NAMESPACE,
    output: Annotated[str, typer.Option("-o", "--output", help="table, json, yaml or csv.")] = "table",
) -> None:
    """Show what became of the GPU-hours of all jobs, or of the time of one job by attempt."""
    run = session.session_of(context)
    if output not in ("table", "json", "yaml", "csv"):
        raise usage(f"there is no output {output!r}", "one of: table, json, yaml, csv")
    if words:
        job = session.one(run.api, *kind_and_name(run, words), namespace)
        answer: Item = run.api.get(session.job_path(job, "goodput"))
        rows = [
            *answer["attempts"],
            {**answer["total"], "attempt": "all", "cluster": "", "outcome": "", "category": ""},
        ]
        names, unit = ["attempt", "cluster", "outcome", "category"], "seconds"
    else:
        params = {"by": by, "from": since, "to": until}
        answer = run.api.get("goodput/", {name: value for name, value in params.items() if value})
        rows, names, unit = answer["results"], ["name"], "gpu_hours"
    if output in ("json", "yaml"):
        return run.screen.json(answer) if output == "json" else run.screen.yaml(answer)
    if not rows and output == "table":
        return run.screen.note(f"No GPU-hours by {by} in this time. --by fleet shows what became of all hours.")
    return _table(run, rows, names, unit, as_csv=output == "csv")


def _table(run: Session, rows: list[Item], names: list[str], unit: str, *, as_csv: bool) -> None:
    columns = [*names, *(f"{part}_{unit}" for part in _PARTS), "ettr", "failures", "mtbf_hours"]
    cells = [
        [
            *(str(row[name]) for name in names),
            *(f"{row[unit][part]:g}" for part in _PARTS),
            *("" if row[name] is None else f"{row[name]:.4g}" for name in ("ettr", "failures", "mtbf_hours")),
        ]
        for row in rows
    ]
    if as_csv:
        csv.writer(sys.stdout, lineterminator="\n").writerows([columns, *cells])
        return
    heads = [name.removesuffix(f"_{unit}").upper().replace("_", " ") for name in columns]
    run.screen.table(heads, cells)
    run.screen.note("in seconds" if unit == "seconds" else "in GPU-hours")


def runtime_of(run: Session, words: list[str], namespace: str) -> Item:
    kind, name = kind_and_name(run, words)
    item = session.one(run.api, kind, name, namespace)
    runtime: Item = run.api.get(session.job_path(item, "runtime"))
    return runtime


def _checkpoint_state(checkpoint: Item) -> str:
    if checkpoint["committed"]:
        return "committed"
    return {True: "saved", False: "failed", None: human.NONE}[checkpoint["ok"]]


def _shards(checkpoint: Item) -> str:
    """``6/8``; the total is only known where the runtime says it."""
    if checkpoint["shards_done"] is None:
        return human.NONE
    return f"{checkpoint['shards_done']}/{checkpoint['shards_total'] or '?'}"


def _warn(run: Session, runtime: Item) -> None:
    for warning in runtime["warnings"]:
        run.screen.note(warning)


def _count(value: int | None) -> str:
    return human.NONE if value is None else str(value)
