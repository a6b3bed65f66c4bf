"""``convoy notices``: what the pods of a job were notified of before their places were taken back, and what they did."""

from datetime import datetime
from typing import Annotated

import typer

from frontend.cli import human, session
from frontend.cli.client import Item
from frontend.cli.commands.jobs import Words, job_of
from frontend.cli.problems import usage
from frontend.cli.session import DEFAULT_NAMESPACE


def notices(
    context: typer.Context,
    words: Words,
    namespace: session.Namespace = DEFAULT_NAMESPACE,
    output: Annotated[str, typer.Option("-o", "--output", help="table, json or yaml.")] = "table",
) -> None:
    """Show the notices that a job's pods were given before their places were taken back."""
    run = session.session_of(context)
    if output not in ("table", "json", "yaml"):
        raise usage(f"there is no output {output!r}", "one of: table, json, yaml")
    rows = run.api.get(session.job_path(job_of(run, words, namespace), "notices"))
    if output == "json":
        return run.screen.json(rows)
    if output == "yaml":
        return run.screen.yaml(rows)
    now = run.now()
    heading = ["POD", "ATTEMPT", "NODE", "CAUSE", "SCOPE", "AGE", "DEADLINE", "HEARD", "LEFT", "STEP"]
    return run.screen.table(heading, [_row(row, now) for row in rows])


def _row(row: Item, now: datetime) -> list[str]:
    step = row["saved_step"]
    return [
        row["pod"], str(row["attempt"]), row["node"], row["cause"], row["scope"], human.age(row["at"], now),
        _ahead(row, now), _after(row, "heard_at"), _after(row, "left_at"), "" if step is None else str(step),
    ]  # fmt: skip


def _ahead(row: Item, now: datetime) -> str:
    left_s = (_time(row["deadline"]) - now).total_seconds()
    return f"in {human.duration(left_s)}" if left_s > 0 and not row["left_at"] else "over"


def _after(row: Item, name: str) -> str:
    """After how many seconds it did so."""
    return f"+{(_time(row[name]) - _time(row['at'])).total_seconds():.1f}s" if row[name] else "-"


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
