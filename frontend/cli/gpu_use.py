"""What GPUs do, as ``top`` prints it: utilisation, memory, power, temperature; and the jobs that leave their GPUs idle."""

from collections.abc import Iterable, Sequence
from typing import Any

from frontend.cli import human
from frontend.cli.client import Api, Item
from frontend.cli.problems import Exit, Problem, missing
from frontend.cli.session import Session

NONE = "-"
"""Not known."""
GROUPS = {"team": "namespace", "queue": "queue"}
"""Word of ``top`` -> what the server groups jobs by."""


def read(api: Api, path: str, field: str) -> list[Item]:
    """What is measured. A server of before measures nothing."""
    try:
        return list(api.get(path)[field])
    except Problem as e:
        if e.exit_code is Exit.NOT_FOUND:
            return []
        raise


def by_job(api: Api) -> dict[str, str]:
    """The mean utilisation of each job that is measured, by id."""
    return {row["id"]: percent(row["utilization"]) for row in read(api, "gpu-usage/jobs/", "results")}


def mean(gpus: Iterable[Item]) -> str:
    values = [gpu["utilization"] for gpu in gpus if gpu["utilization"] is not None]
    return percent(sum(values) / len(values) if values else None)


def memory(gpus: Sequence[Item]) -> str:
    """Used and total of all together."""
    known = [gpu for gpu in gpus if gpu["memory_used"] is not None and gpu["memory_total"] is not None]
    if not known:
        return NONE
    used, total = (sum(gpu[field] for gpu in known) for field in ("memory_used", "memory_total"))
    return f"{used:.0f}MiB / {total:.0f}MiB"


def cells(gpu: Item) -> list[str]:
    """Utilisation, memory, power and temperature of one GPU."""
    return [percent(gpu["utilization"]), memory([gpu]), _unit(gpu["power"], "W"), _unit(gpu["temperature"], "C")]


def percent(value: float | None) -> str:
    return NONE if value is None else f"{value:.0f}%"


def _unit(value: Any, unit: str) -> str:
    return NONE if value is None else f"{value:.0f}{unit}"


def print_idle(run: Session) -> None:
    """Running jobs whose GPUs are allocated and idle."""
    answer = run.api.get("gpu-usage/idle/")
    if not answer["results"]:
        run.screen.note(f"No job has left a GPU idle for {answer['minutes']:g} minutes, of what is measured.")
        return
    now = run.now()
    rows = [
        [
            *(row["namespace"], row["name"], row["queue"] or NONE, row["cluster"]),
            *(f"{row['idle_gpus']}/{row['gpus']}", human.age(row["since"], now), f"{row['gpu_hours']:.1f}"),
        ]
        for row in answer["results"]
    ]
    run.screen.table(["NAMESPACE", "JOB", "QUEUE", "CLUSTER", "IDLE/GPUS", "IDLE", "GPU-HOURS"], rows)
    if answer["is_cut"]:
        run.screen.note("There are more: only those that waste most are shown.")


def print_groups(run: Session, word: str) -> None:
    """What the GPUs of the running jobs of each team or queue do."""
    try:
        answer = run.api.get("gpu-usage/groups/", {"by": GROUPS[word]})
    except Problem as e:
        if e.exit_code is not Exit.NOT_FOUND:
            raise
        message = f"the server is older than this command, and does not know what the GPUs of each {word} do"
        raise missing(message, "ask a fleet admin to upgrade it") from e
    if not answer["results"]:
        run.screen.note("No running job has GPUs.")
        return
    rows = [
        [row["name"] or NONE, *(str(row[field]) for field in ("gpus", "measured", "idle")), percent(row["utilization"])]
        for row in answer["results"]
    ]
    run.screen.table([word.upper(), "GPUS", "MEASURED", "IDLE", "UTIL"], rows)
