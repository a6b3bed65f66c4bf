"""The jobs of one queue in order, as ``convoy queue get`` and ``convoy get queue NAME -o wide`` print them."""

from datetime import datetime

from frontend.cli import human
from frontend.cli.client import Item
from frontend.cli.session import Session


def show(run: Session, queue: Item) -> None:
    """Prints the waiting and running jobs of the queue, those that wait first, by position."""
    comment = f" by {queue['state_by']}: {queue['state_comment']}" if queue["state_comment"] else ""
    run.screen.note(f"{queue['name']} ({queue['path']}) is {queue['state']}{comment}")
    units = run.api.list("queueunits/", {"queue": queue["path"]})
    if not units:
        run.screen.note("The queue is empty.")
        return
    unfinished = [unit for unit in units if unit["phase"] not in ("Succeed", "Failed")]
    unfinished.sort(key=lambda unit: (unit["position"] is None, unit["position"] or 0))
    rows = [_unit(unit, run.now()) for unit in unfinished]
    run.screen.table(["POSITION", "JOB", "PHASE", "PRIORITY", "ASKS FOR", "MAY START", "MESSAGE"], rows)


def _unit(unit: Item, now: datetime) -> list[str]:
    job = f"{unit['namespace']}/{unit['name']}"
    return [
        str(unit["position"] or ""), job, unit["phase"], str(unit["priority"]), _request(unit),
        _start(unit.get("estimate"), now), unit["message"],
    ]  # fmt: skip


def _start(estimate: Item | None, now: datetime) -> str:
    """The estimated start, marked with ``~`` and its basis."""
    at = human.moment(estimate["starts_at"]) if estimate else None
    if estimate is None or at is None:
        return ""
    wait_s = (at - now).total_seconds()
    return f"~{human.duration(wait_s)} ({estimate['basis']})" if wait_s > 0 else estimate["basis"]


def _request(unit: Item) -> str:
    return human.amounts({name: amount for name, amount in unit["request"].items() if name != "pods"})
