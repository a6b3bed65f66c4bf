"""``convoy suspend``, ``resume``, ``wait`` and ``logs``: actions on a submitted job."""

import time
from collections.abc import Mapping
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
POLL_S = 0.5
Words = Annotated[list[str], typer.Argument(metavar="[KIND] NAME", help="A job's name, or its kind and its name.")]


def suspend(context: typer.Context, words: Words, namespace: session.Namespace = DEFAULT_NAMESPACE) -> None:
    """Stop a job's pods and free their capacity and quota. The job stays in the fleet and can be resumed."""
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


def logs(  # noqa: PLR0913 - each option is a parameter
    context: typer.Context,
    words: Words,
    namespace: session.Namespace = DEFAULT_NAMESPACE,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Follow the log until the pod ends.")] = False,
    role: Annotated[str, typer.Option(help="The role, such as worker. Default: the first role.")] = "",
    index: Annotated[int | None, typer.Option(min=0, help="The index of the pod in its role.")] = None,
    pod: Annotated[
        str, typer.Option("--pod", "-i", "--instance", help="The name of the pod, instead of role and index.")
    ] = "",
    tail: Annotated[
        int | None, typer.Option("--tail", "-t", min=0, help="Print only this many lines from the end.")
    ] = None,
    attempt: Annotated[
        int | None, typer.Option("--attempt", min=1, help="An earlier attempt, of which the log was kept.")
    ] = None,
) -> None:
    """Print the log of one pod of a job; of a pod that is gone, what was kept of it."""
    run = session.session_of(context)
    options = {"role": role, "index": index, "pod": pod, "tail": tail, "attempt": attempt}
    print_log(run, job_of(run, words, namespace), options, follow=follow)


def print_log(run: Session, item: Item, options: Mapping[str, object], *, follow: bool) -> None:
    """Prints a log as it is written. ``options`` are query parameters; empty ones are left out."""
    params = {key: value for key, value in options.items() if value not in ("", None)}
    params |= {"follow": "true"} if follow else {}
    if follow:
        _await_start(run, item)
    with run.api.stream(session.job_path(item, "logs"), params) as chunks:
        run.screen.log(chunks)


def _await_start(run: Session, item: Item) -> None:
    """Waits until the job has started. Prints once that it waits, and why."""
    is_reported = False
    while item["state"] not in ("Running", *ENDED):
        if not is_reported:
            run.screen.note(f"waiting for {item['name']} to start; it is {item['state']}: {_why(item)}")
            is_reported = True
        time.sleep(POLL_S)
        item = run.api.get(session.job_path(item))


def wait(
    context: typer.Context,
    words: Words,
    wanted: Annotated[
        str, typer.Option("--for", help=f"The state to wait for: {', '.join(STATES)} or {DELETED}.")
    ] = "Succeeded",
    timeout: Annotated[str, typer.Option(help="How long to wait, such as 60s, 5m, 1h30m.")] = "60s",
    namespace: session.Namespace = DEFAULT_NAMESPACE,
) -> None:
    """Wait until a job is in a state. Exits with 5 after the timeout, with 1 if the job has ended in another state."""
    run = session.session_of(context)
    longest, state = limit(timeout), _state(wanted)
    until = time.monotonic() + longest
    item = job_of(run, words, namespace) if state != DELETED else _maybe(run, words, namespace)
    label = words[-1]
    while item is not None and not _has_reached(item, state):
        _refuse_ended(item, state)
        if time.monotonic() >= until:
            message = f"{label} is {item['state']}, not {state}, after {human.duration(longest)}"
            raise Problem(message, hint=_why(item), exit_code=Exit.TIMEOUT)
        time.sleep(min(POLL_S, max(0.0, until - time.monotonic())))
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


def _has_reached(item: Item, state: str) -> bool:
    """Whether the job is in the state. Succeeded counts as Running, because a short job may succeed between two requests."""
    return item["state"] == state or (state == "Running" and item["state"] == "Succeeded")


def _refuse_ended(item: Item, state: str) -> None:
    if item["state"] in ENDED and state != DELETED:
        raise Problem(f"{item['name']} has ended: {item['state']}", hint=_why(item))


def _why(item: Item) -> str:
    return (item.get("reason") or {}).get("message", "") or f"`convoy describe {item['name']}` has more"


def limit(text: str) -> float:
    try:
        return min(human.seconds(text), timedelta(days=365).total_seconds())
    except ValueError as e:
        raise usage(f"{text!r} is not a duration", "for example: 60s, 5m, 1h30m") from e


def _state(text: str) -> str:
    """The state that the text names, in any case. Accepts ``condition=Running`` too, as kubectl does."""
    plain = text.rpartition("=")[2].lower()
    known = {state.lower(): state for state in (*STATES, DELETED)} | {"delete": DELETED}
    if plain not in known:
        raise usage(f"there is no state {text!r}", f"one of: {', '.join((*STATES, DELETED))}")
    return known[plain]
