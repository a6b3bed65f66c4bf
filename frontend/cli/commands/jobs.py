"""What is done to a job that is in: suspend, resume, wait for a state, read its log."""

import time
from datetime import timedelta
from typing import Annotated

import typer

from frontend.cli import human, session
from frontend.cli.client import Item
from frontend.cli.commands.describe import kind_and_name
from frontend.cli.problems import Exit, Problem, missing, usage
from frontend.cli.session import DEFAULT_NAMESPACE, Session

STATES = (
    "Queued", "Placed", "Dispatched", "Running", "Succeeded", "Failed", "Suspended", "Reclaiming",
    "Moving", "Backoff",
)  # fmt: skip
ENDED = ("Succeeded", "Failed")
DELETED = "Deleted"
ASK_EVERY_S = 0.5
Words = Annotated[list[str], typer.Argument(metavar="[KIND] NAME", help="A job's name, or its kind and its name.")]


def suspend(context: typer.Context, words: Words, namespace: session.Namespace = DEFAULT_NAMESPACE) -> None:
    """Stop a job's pods and free what they use; it keeps its place in the list."""
    _act(context, words, namespace, "suspend", "suspended")


def resume(context: typer.Context, words: Words, namespace: session.Namespace = DEFAULT_NAMESPACE) -> None:
    """Queue a suspended job again."""
    _act(context, words, namespace, "resume", "resumed")


def _act(context: typer.Context, words: list[str], namespace: str, verb: str, done: str) -> None:
    run = session.session_of(context)
    item = job_of(run, words, namespace)
    run.api.post(session.job_path(item, verb))
    run.screen.line(f"{item['kind'].lower()}/{item['name']} {done}")


def job_of(run: Session, words: list[str], namespace: str) -> Item:
    kind, name = kind_and_name(run, words)
    if kind.path != "jobs":
        raise usage(f"a {kind.word} is not a job")
    return session.job(run.api, name, namespace, kind)


def logs(
    context: typer.Context,
    words: Words,
    namespace: session.Namespace = DEFAULT_NAMESPACE,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Until the pod ends.")] = False,
    role: Annotated[str, typer.Option(help="Such as worker; default: the first role.")] = "",
    index: Annotated[int | None, typer.Option(min=0, help="Which pod of the role.")] = None,
    pod: Annotated[str, typer.Option(help="A pod by its name.")] = "",
    tail: Annotated[int | None, typer.Option(min=0, help="Only so many lines from the end.")] = None,
) -> None:
    """Print the log of one of a job's pods."""
    run = session.session_of(context)
    item = job_of(run, words, namespace)
    options = {"role": role, "index": index, "pod": pod, "tail": tail, "follow": "true" if follow else None}
    params = {key: value for key, value in options.items() if value not in ("", None)}
    if follow:
        _await_start(run, item)
    with run.api.stream(session.job_path(item, "logs"), params) as chunks:
        for chunk in chunks:
            run.screen.bytes(chunk)


def _await_start(run: Session, item: Item) -> None:
    """Following a job that has not started means waiting for it, and saying so once."""
    is_reported = False
    while item["state"] not in ("Running", *ENDED):
        if not is_reported:
            run.screen.note(f"waiting for {item['name']} to start; it is {item['state']}: {_why(item)}")
            is_reported = True
        time.sleep(ASK_EVERY_S)
        item = run.api.get(session.job_path(item))


def wait(
    context: typer.Context,
    words: Words,
    wanted: Annotated[str, typer.Option("--for", help=f"{', '.join(STATES)} or {DELETED}.")] = "Succeeded",
    timeout: Annotated[str, typer.Option(help="Such as 60s, 5m, 1h30m.")] = "60s",
    namespace: session.Namespace = DEFAULT_NAMESPACE,
) -> None:
    """Wait until a job is in a state; exit code 5 when it takes too long, 1 when it can no longer get there."""
    run = session.session_of(context)
    limit, state = _limit(timeout), _state(wanted)
    until = time.monotonic() + limit
    item = job_of(run, words, namespace) if state != DELETED else _maybe(run, words, namespace)
    label = words[-1]
    while item is not None and not _there(item, state):
        _refuse_ended(item, state)
        if time.monotonic() >= until:
            is_reported = f"{label} is {item['state']}, not {state}, after {human.duration(limit)}"
            raise Problem(is_reported, hint=_why(item), exit_code=Exit.TIMEOUT)
        time.sleep(min(ASK_EVERY_S, max(0.0, until - time.monotonic())))
        item = _maybe(run, words, namespace)
    if item is None and state != DELETED:
        raise missing(f"{label} was deleted while waiting for it")
    run.screen.line(f"{label} is {DELETED if item is None else item['state']}")


def _maybe(run: Session, words: list[str], namespace: str) -> Item | None:
    try:
        return job_of(run, words, namespace)
    except Problem as e:
        if e.exit_code is Exit.NOT_FOUND:
            return None
        raise


def _there(item: Item, state: str) -> bool:
    """A short job may have run and succeeded between two looks."""
    return item["state"] == state or (state == "Running" and item["state"] == "Succeeded")


def _refuse_ended(item: Item, state: str) -> None:
    if item["state"] in ENDED and state != DELETED:
        raise Problem(f"{item['name']} has ended: {item['state']}", hint=_why(item))


def _why(item: Item) -> str:
    return (item.get("reason") or {}).get("message", "") or f"`convoy describe {item['name']}` has more"


def _limit(text: str) -> float:
    try:
        return min(human.seconds(text), timedelta(days=365).total_seconds())
    except ValueError as e:
        raise usage(f"{text!r} is not a duration", "for example: 60s, 5m, 1h30m") from e


def _state(text: str) -> str:
    """Also as ``condition=Running`` and in any case."""
    plain = text.rpartition("=")[2].lower()
    known = {each.lower(): each for each in (*STATES, DELETED)} | {"delete": DELETED}
    if plain not in known:
        raise usage(f"there is no state {text!r}", f"one of: {', '.join((*STATES, DELETED))}")
    return known[plain]
