"""What the logs of a training say of it: rendezvous, restarts, node checks, stragglers, checkpoints.

torchrun and dlrover write one JSON object a line if the environment asks for it (``PET_EVENT_LOG_HANDLER=console``;
``DLROVER_EVENT_EVENT_EXPORTER=CONSOLE`` and ``DLROVER_EVENT_TEXT_FORMATTER=JSON``), so that no script changes;
``convoy_runtime`` writes its own. A tenant writes its own log: what it says is shown and decides nothing.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from jobs.runtime import lines
from jobs.runtime.lines import mapping, number, seconds, text

MOST = 200
"""Facts that are kept of one log, the latest."""


class Kind(StrEnum):
    RENDEZVOUS = "Rendezvous"
    RESTART = "Restart"
    """The processes of a node were started again, in the same pod."""
    MEMBERSHIP = "Membership"
    """A node came or went, and the processes were started again because of it."""
    RELAUNCH = "Relaunch"
    """A pod was replaced."""
    FAILED = "Failed"
    SUCCEEDED = "Succeeded"
    NODE_CHECK = "NodeCheck"
    STRAGGLER = "Straggler"
    CHECKPOINT = "Checkpoint"


@dataclass(frozen=True, slots=True)
class Fact:
    kind: Kind
    at: datetime | None = None
    pod: str = ""
    node: str = ""
    round: int | None = None
    rank: int | None = None
    """Of a rendezvous of dlrover that of the node, else the global rank of the process."""
    world_size: int | None = None
    seconds: float | None = None
    restarts: int | None = None
    remaining: int | None = None
    """Restarts that are left."""
    exit_code: int | None = None
    step: int | None = None
    tier: str = ""
    """memory or disk."""
    ok: bool | None = None
    message: str = ""

    def as_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value not in (None, "")}


def read(log: str, pod: str) -> list[Fact]:
    """The latest facts of one pod's log, in its order."""
    kept: deque[Fact] = deque(maxlen=MOST)
    kept.extend(replace(fact, pod=fact.pod or pod) for fact in _facts(log))
    return _with_true_steps(list(kept))


def _facts(log: str) -> Iterator[Fact]:
    for line in log.split("\n"):
        if len(line) > lines.LONGEST:
            continue
        written, at = lines.without_stamp(line.rstrip("\r"))
        for fact in _of_line(written):
            yield replace(fact, at=at or fact.at)


def _of_line(line: str) -> Iterable[Fact]:
    event = lines.json_object(line)
    if not event:
        return _of_plain(line)
    name = event.get("name")
    if not isinstance(name, str):
        return ()
    if name.startswith("torchelastic."):
        return _of_torchrun(name, event)
    if name == "convoy.checkpoint":
        return _of_checkpoint(event)
    reader = _DLROVER.get(name)
    # The end of a span repeats what its beginning states.
    return reader(event) if reader and event.get("event_type") != "BEGIN" else ()


_TORCHRUN = {"SUCCEEDED": Kind.SUCCEEDED, "FAILED": Kind.FAILED, "ASSIGN_WORKER_RANKS": Kind.RENDEZVOUS}


def _of_torchrun(name: str, event: Mapping[str, Any]) -> Iterable[Fact]:
    kind, metadata = _TORCHRUN.get(name.rpartition(".")[2]), mapping(event.get("metadata"))
    if kind is None:
        return ()
    details = lines.json_object(metadata["metadata"]) if isinstance(metadata.get("metadata"), str) else {}
    milliseconds = number(event.get("timestamp"))
    duration = seconds(metadata.get("duration_ms"))
    fact = Fact(
        kind,
        at=None if not milliseconds else _epoch(milliseconds / 1000),
        rank=number(metadata.get("global_rank")),
        world_size=number(details.get("group_world_size")) or number(details.get("role_world_size")),
        seconds=None if duration is None else round(duration / 1000, 3),
        restarts=number(metadata.get("agent_restarts")),
        message=_error_of(metadata.get("raw_error")),
    )
    return [fact]


def _of_checkpoint(event: Mapping[str, Any]) -> Iterable[Fact]:
    """As `convoy_runtime.saved` writes it. What is no step is no checkpoint."""
    step, tier = number(event.get("step")), text(event.get("tier"))
    if step is None:
        return ()
    at, rank, took = lines.moment(event.get("at")), number(event.get("rank")), seconds(event.get("seconds"))
    return [Fact(Kind.CHECKPOINT, at=at, rank=rank, step=step, tier=tier, seconds=took, ok=True)]


def _epoch(at: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(at, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _error_of(raw: object) -> str:
    """torch writes an error as a JSON object of its own in a text."""
    if not isinstance(raw, str):
        return ""
    message = mapping(lines.json_object(raw).get("message")) or lines.json_object(raw)
    return text(message.get("message")) or text(raw)


def _dlrover_rendezvous(event: Mapping[str, Any]) -> Iterable[Fact]:
    content = _content(event)
    fact = _at(event, Kind.RENDEZVOUS)
    is_check = "check" in text(content.get("rendezvous_type"))
    done = content.get("success")
    return [
        replace(
            fact,
            round=_first(content, "round", "round_num"),
            rank=number(content.get("rank")),
            world_size=number(content.get("world_size")),
            seconds=seconds(content.get("elapsed_time")),
            ok=done if isinstance(done, bool) else None,
            message="node check" if is_check else "",
        )
    ]


def _dlrover_check(event: Mapping[str, Any]) -> Iterable[Fact]:
    content = _content(event)
    took = seconds(content.get("elapsed_time"))
    status = text(str(content.get("status", ""))).lower()
    failed = status in ("false", "failed", "failure", "breakdown") or (took or 0.0) >= _CHECK_FAILED_S
    fact = _at(event, Kind.NODE_CHECK)
    return [
        replace(
            fact,
            round=_first(content, "round", "round_num"),
            seconds=took,
            ok=not failed,
            rank=number(content.get("node_rank")),
        )
    ]


_CHECK_FAILED_S = 3600.0
"""dlrover's word for a check that has failed."""


def _dlrover_restart(event: Mapping[str, Any]) -> Iterable[Fact]:
    content = _content(event)
    message = content.get("failures") or content.get("errmsg") or ""
    message = text(message if isinstance(message, str) else str(message)[:500])
    code = _EXIT_CODE.search(message)
    fact = _at(event, Kind.MEMBERSHIP if text(event.get("name")).endswith("membership") else Kind.RESTART)
    return [
        replace(
            fact,
            restarts=_first(content, "restart_count", "restart_round"),
            remaining=number(content.get("remaining_restarts")),
            exit_code=int(code[1]) if code else None,
            message=message,
        )
    ]


_EXIT_CODE = re.compile(r"exit_?code[^\w-]{1,3}(-?\d{1,3})\b")


def _dlrover_relaunch(event: Mapping[str, Any]) -> Iterable[Fact]:
    content = _content(event)
    new = text(content.get("relaunch_pod_name")) or text(content.get("new_pod_name"))
    return [replace(_at(event, Kind.RELAUNCH), message=f"replaced by {new}" if new else text(content.get("reason")))]


def _dlrover_exit(event: Mapping[str, Any]) -> Iterable[Fact]:
    content = _content(event)
    words = [text(content.get("exc_type")), text(content.get("exc_value")) or text(content.get("reason"))]
    message = ": ".join(word for word in words if word)
    return [replace(_at(event, Kind.FAILED), message=message)] if words[0] else ()


def _dlrover_end(event: Mapping[str, Any]) -> Iterable[Fact]:
    kind = Kind.SUCCEEDED if text(event.get("name")).endswith("succeeded") else Kind.FAILED
    return [replace(_at(event, kind), message=text(_content(event).get("errmsg")))]


_DLROVER: Mapping[str, Callable[[Mapping[str, Any]], Iterable[Fact]]] = {
    "#rendezvous": _dlrover_rendezvous,
    "#network_check": _dlrover_check,
    "#process_restart": _dlrover_restart,
    "#process_restart_membership": _dlrover_restart,
    "#worker_relaunch": _dlrover_relaunch,
    "#pod_relaunch": _dlrover_relaunch,
    "#agent_exit": _dlrover_exit,
    "#process_fail": _dlrover_end,
    "#process_succeeded": _dlrover_end,
}


def _at(event: Mapping[str, Any], kind: Kind) -> Fact:
    content = _content(event)
    at = lines.moment(event.get("event_time"))
    return Fact(kind, at=at, pod=text(content.get("pod_name")), node=text(content.get("node_name")))


def _content(event: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(event.get("content"))


def _first(content: Mapping[str, Any], *names: str) -> int | None:
    return next((value for name in names if (value := number(content.get(name))) is not None), None)


_TIME = re.compile(r"\[?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)")
_SAVED = re.compile(r"\[(mem_ckpt_complete|save_shard_complete|save_shard_error)\]\[[^\]]{0,80}?step=(\d{1,12})\b")
_STRAGGLERS = re.compile(r"stragglers are\s?:?\s?\[([\d, ]{1,200})\]", re.IGNORECASE)


def _of_plain(line: str) -> Iterable[Fact]:
    """Lines of dlrover that are no JSON."""
    time = _TIME.match(line)
    at = lines.moment(time[1].replace(" ", "T")) if time else None
    if saved := _SAVED.search(line):
        tier = "memory" if saved[1].startswith("mem") else "disk"
        return [Fact(Kind.CHECKPOINT, at=at, step=int(saved[2]), tier=tier, ok=not saved[1].endswith("error"))]
    if stragglers := _STRAGGLERS.search(line):
        ranks = re.findall(r"\d{1,6}", stragglers[1])[:20]
        return [Fact(Kind.STRAGGLER, at=at, rank=int(rank)) for rank in ranks]
    return ()


def _with_true_steps(facts: list[Fact]) -> list[Fact]:
    """Corrects the steps of checkpoints in memory: from the second on, dlrover 0.6.1 names the step of the one before.

    So the step of each is the one that the next line names. The last one goes on at the distance of the two before it.
    """
    places = [
        n
        for n, fact in enumerate(facts)
        if fact.kind is Kind.CHECKPOINT
        and fact.tier == "memory"
        and fact.rank is None  # those of convoy_runtime have one
    ]
    steps = [facts[place].step or 0 for place in places]
    if len(steps) < 2:
        return facts
    last = steps[-1] + max(steps[-1] - steps[-2], steps[1] - steps[0], 0)
    if len(steps) == 2 and steps[0] == steps[1]:
        last = 2 * steps[0]
    for place, step in zip(places, [*steps[1:], last], strict=True):
        facts[place] = replace(facts[place], step=step)
    return facts
