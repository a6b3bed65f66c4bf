"""How arena writes tables, durations and the states of jobs. No I/O; the current time is an argument."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from frontend.cli import human
from frontend.cli.client import Item
from frontend.cli.submit.kinds import trainer_of

NONE = "N/A"
MAX_WAIT = "MAX_WAIT_TIME_EXCEEDED"
ENDED = ("SUCCEEDED", "FAILED", MAX_WAIT)
_STATES = {
    "Succeeded": "SUCCEEDED",
    "Failed": "FAILED",
    "Running": "RUNNING",
    "Queued": "QUEUING",
    "Suspended": "SUSPENDED",
}
_UNITS = ((365 * 86_400, "y"), (86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))
_CHIEFS = ("launcher", "chief", "master", "head", "driver", "worker")
_SCALING = "Scaling"


def columns(rows: Sequence[Sequence[str]], *, indent: int = 0) -> list[str]:
    """Lines with two spaces between columns that are as wide as their cells."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return [
        (" " * indent + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))).rstrip()
        for row in rows
    ]


def ruled(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Columns below underlined headers, indented."""
    return columns([headers, ["-" * len(header) for header in headers], *rows], indent=2)


def duration(seconds: float) -> str:
    """One unit, rounded down: ``59s``, ``10m``, ``12h``, ``2d``, ``1y``."""
    whole = max(0, int(seconds))
    size, unit = next((pair for pair in _UNITS if whole >= pair[0]), _UNITS[-1])
    return f"{whole // size}{unit}"


def age(text: str | None, now: datetime) -> str:
    at = human.moment(text)
    return NONE if at is None else duration((now - at).total_seconds())


def lasted(item: Item, now: datetime) -> str:
    """How long a job has run, or ran; how long it waits, if it has not started."""
    began = human.moment(item.get("started_at")) or human.moment(item.get("created_at"))
    ended = human.moment(item.get("finished_at")) or now
    return NONE if began is None else duration((ended - began).total_seconds())


def trainer(item: Item) -> str:
    return trainer_of(str(item.get("kind", "")), str(item.get("api_version", "")).rpartition("/")[0])


@dataclass(frozen=True, slots=True)
class Instance:
    """One pod of a job. ``node`` is empty until it is bound."""

    name: str
    status: str
    created_at: str | None
    chief: bool
    gpus: int
    cluster: str
    node: str


def instances(item: Item, pods: Iterable[Item]) -> list[Instance]:
    """The pods of the job's current attempt, its chief first, then by role and index."""
    roles = {str(role["name"]): role for role in item.get("roles") or []}
    order = list(roles)
    chief = next((role for role in _CHIEFS if role in roles), "")
    current = [pod for pod in pods if pod.get("attempt") == item.get("attempt")]

    def is_chief(pod: Item) -> bool:
        return bool(pod["role"] == chief and pod["index"] == 0)

    def key(pod: Item) -> tuple[bool, int, int, str]:
        role = order.index(pod["role"]) if pod["role"] in order else len(order)
        return not is_chief(pod), role, pod["index"], pod["name"]

    return [
        Instance(
            name=pod["name"],
            status=pod["phase"],
            created_at=pod.get("created_at"),
            chief=is_chief(pod),
            gpus=(roles.get(pod["role"]) or {}).get("gpus") or 0,
            cluster=pod.get("cluster") or "",
            node=pod.get("node") or "",
        )
        for pod in sorted(current, key=key)
    ]


def status(item: Item, pods: Iterable[Instance]) -> str:
    """The state of a job. One that runs and has a pod that does not run yet is PENDING, as is one that is being started."""
    if item.get("state") == "Running" and any(pod.status == "Pending" for pod in pods):
        return "PENDING"
    if item.get("state") == "Running" and (item.get("status") or {}).get("phase") == _SCALING:
        return "SCALING"
    if item.get("state") == "Failed" and (item.get("reason") or {}).get("code") == "MaxWaitExceeded":
        return MAX_WAIT
    return _STATES.get(str(item.get("state")), "PENDING")


def allocated(pods: Iterable[Instance]) -> int:
    """The GPUs of the pods that are on a node and have not ended."""
    return sum(pod.gpus for pod in pods if pod.node and pod.status in ("Pending", "Running"))


def chief_node(pods: Iterable[Instance]) -> str:
    return next((pod.node for pod in pods if pod.chief and pod.node), NONE)
