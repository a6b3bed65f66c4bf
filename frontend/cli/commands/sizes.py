"""``convoy scalein`` and ``scaleout``: fewer or more pods for a running job, by the words that arena has for it."""

import time
from typing import Annotated

import typer

from frontend.cli import human, session
from frontend.cli.client import Item
from frontend.cli.commands import jobs
from frontend.cli.problems import Exit, Problem, usage
from frontend.cli.session import DEFAULT_NAMESPACE

ARENA = {"et": "trainingjob", "etjob": "trainingjob", "py": "pytorchjob", "pytorch": "pytorchjob"}
"""What arena calls the kinds that can be resized."""
Words = Annotated[
    list[str] | None, typer.Argument(metavar="[KIND] [NAME]", help="A job's name, or its kind and its name.")
]
Name = Annotated[str, typer.Option(help="The job's name, instead of an argument.")]
Count = Annotated[int, typer.Option(min=1, help="How many pods less, or more.")]
Role = Annotated[str, typer.Option(help="The role to resize. Default: the only one that can be.")]
Timeout = Annotated[str, typer.Option(help="Wait so long for the new size, such as 60s, 5m. Default: do not wait.")]


def scalein(
    context: typer.Context,
    words: Words = None,
    name: Name = "",
    count: Count = 1,
    role: Role = "",
    timeout: Timeout = "",
    namespace: session.Namespace = DEFAULT_NAMESPACE,
) -> None:
    """Take pods from a running job. Their quota is free at once."""
    _scale(context, _named(words, name), namespace, role, -count, timeout)


def scaleout(
    context: typer.Context,
    words: Words = None,
    name: Name = "",
    count: Count = 1,
    role: Role = "",
    timeout: Timeout = "",
    namespace: session.Namespace = DEFAULT_NAMESPACE,
) -> None:
    """Give a running job more pods, as soon as its quota and its cluster have room."""
    _scale(context, _named(words, name), namespace, role, count, timeout)


def _named(words: list[str] | None, name: str) -> list[str]:
    named = [*(words or []), *([name] if name else [])]
    if not named:
        raise usage("name the job", "for example: convoy scaleout pytorchjob llama --count 2")
    return [ARENA.get(named[0], named[0]), *named[1:]] if len(named) > 1 else named


def _scale(context: typer.Context, words: list[str], namespace: str, role: str, by: int, timeout: str) -> None:
    run = session.session_of(context)
    limit = jobs.limit(timeout) if timeout else 0.0
    item = jobs.job_of(run, words, namespace)
    sizes = item.get("size") or {}
    role = role or next(iter(sizes), "") if len(sizes) < 2 else role
    before = sizes.get(role, {}).get("replicas", 0)
    wanted = max(before + by, 0)
    item = run.api.post(session.job_path(item, "resize"), {"role": role, "replicas": wanted})
    label, until = f"{item['kind'].lower()}/{item['name']}", time.monotonic() + limit
    while not _has(item, role, wanted) and time.monotonic() < until:
        time.sleep(min(jobs.POLL_S, max(0.0, until - time.monotonic())))
        item = run.api.get(session.job_path(item))
    if _has(item, role, wanted):
        run.screen.line(f"{label} {role} scaled from {before} to {wanted}")
        return
    why = ((item.get("resize") or {}).get("reason") or {}).get("message", "waits for the scheduler")
    if timeout:
        message = f"{label} {role} is {before}, not {wanted}, after {human.duration(limit)}"
        raise Problem(message, hint=why, exit_code=Exit.TIMEOUT)
    run.screen.line(f"{label} {role} is to grow from {before} to {wanted}: {why}")


def _has(item: Item, role: str, wanted: int) -> bool:
    return bool(((item.get("size") or {}).get(role) or {}).get("replicas") == wanted)
