"""What the logs of a training say of it: rendezvous, restarts, node checks, stragglers, checkpoints.

torchrun and dlrover write one JSON object a line if the environment asks for it (``PET_EVENT_LOG_HANDLER=console``;
``DLROVER_EVENT_EVENT_EXPORTER=CONSOLE`` and ``DLROVER_EVENT_TEXT_FORMATTER=JSON``), so that no script changes;
``convoy_runtime`` writes its own. A tenant writes its own log: what it says is shown, and at most keeps its own job off a node.
"""

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from jobs.runtime import dlrover, lines
from jobs.runtime.fact import Fact, Kind
from jobs.runtime.lines import mapping, number, seconds, text

__all__ = ["MOST", "Fact", "Kind", "are_written", "read"]

MOST = 200
"""Facts that are kept of one log, the latest."""


_ENVIRONMENT = ("PET_EVENT_LOG_HANDLER", "DLROVER_EVENT_EVENT_EXPORTER")


def are_written(kind: str, manifest: Mapping[str, Any]) -> bool:
    """Whether the pods of this job write such lines: dlrover's always do, others if their environment says so."""
    return kind == "ElasticJob" or any(f'"{name}"' in json.dumps(manifest) for name in _ENVIRONMENT)


def read(log: str, pod: str) -> list[Fact]:
    """The latest facts of one pod's log, in its order."""
    kept: deque[Fact] = deque(maxlen=MOST)
    kept.extend(replace(fact, pod=fact.pod or pod) for fact in _facts(log))
    return dlrover.with_true_steps(list(kept))


def _facts(log: str) -> Iterator[Fact]:
    of_dlrover = dlrover.Reader()
    for line in log.split("\n"):
        if len(line) > lines.LONGEST:
            continue
        written, at = lines.without_stamp(line.rstrip("\r"))
        for fact in _of_line(written, at, of_dlrover):
            yield replace(fact, at=at or fact.at)


def _of_line(line: str, at: datetime | None, of_dlrover: dlrover.Reader) -> Iterable[Fact]:
    event = lines.json_object(line)
    if not event:
        return of_dlrover.of_plain(line, at)
    name = event.get("name")
    if not isinstance(name, str):
        return ()
    if name.startswith("torchelastic."):
        return _of_torchrun(name, event)
    if name == "convoy.checkpoint":
        return _of_checkpoint(event)
    return of_dlrover.of_event(name, event)


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
