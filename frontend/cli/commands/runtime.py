"""``convoy ckpt list`` and ``convoy ranks``: what the runtime of a job says in its logs."""

from typing import Annotated

import typer

from frontend.cli import human, session
from frontend.cli.client import Item
from frontend.cli.commands.describe import kind_and_name
from frontend.cli.session import DEFAULT_NAMESPACE, Session

ckpt = typer.Typer(help="The checkpoints that a job's runtime reports.", no_args_is_help=True)
Words = Annotated[list[str], typer.Argument(metavar="[KIND] NAME", help="A job's name, or its kind and its name.")]


@ckpt.command("list")
def checkpoints(context: typer.Context, words: Words, namespace: session.Namespace = DEFAULT_NAMESPACE) -> None:
    """List a job's checkpoints, oldest first: step, where it was saved, and how that ended."""
    run = session.session_of(context)
    runtime = runtime_of(run, words, namespace)
    now = run.now()
    rows = [
        [
            str(each["step"]) if each["step"] is not None else human.NONE,
            each["tier"] or human.NONE,
            {True: "saved", False: "failed", None: human.NONE}[each["ok"]],
            human.age(each["at"], now) if each["at"] else human.NONE,
            each["pod"],
        ]
        for each in runtime["checkpoints"]
    ]
    _warn(run, runtime)
    run.screen.table(["STEP", "TIER", "STATE", "AGE", "POD"], rows)


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


def runtime_of(run: Session, words: list[str], namespace: str) -> Item:
    kind, name = kind_and_name(run, words)
    item = session.one(run.api, kind, name, namespace)
    runtime: Item = run.api.get(session.job_path(item, "runtime"))
    return runtime


def _warn(run: Session, runtime: Item) -> None:
    for warning in runtime["warnings"]:
        run.screen.note(warning)


def _count(value: int | None) -> str:
    return human.NONE if value is None else str(value)
