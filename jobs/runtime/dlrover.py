"""The lines of dlrover: its JSON events, and the plain lines of its log about node checks and checkpoints. Read from 0.6.1.

Its events state many numbers as text; the span of a node check that fails never ends, for the call that would end it raises, so
that the plain line has to say it; and the lines about checkpoints in memory name the step of the save before.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from jobs.runtime import lines
from jobs.runtime.fact import Fact, Kind
from jobs.runtime.lines import mapping, number, seconds, text

CHECK_FAILED_S = 3600.0
"""dlrover's word for a check that has failed."""
CHECK_ERROR = "NodeCheckFailedError"
"""The agent of a node that failed the check, or straggled and is to leave, ends with it."""
STRAGGLES = "straggler"
"""What the error says then, if the node was slow and not faulty."""
_MOST_OPEN = 256
"""Spans and saves whose ends are waited for."""


class Reader:
    """Reads one log in its order: what ends is measured from where it began."""

    def __init__(self) -> None:
        self._begun: dict[object, datetime] = {}
        self._shards: int | None = None
        self._last_check: tuple[int | None, float | None] | None = None

    def of_event(self, name: str, event: Mapping[str, Any]) -> Iterable[Fact]:
        reader = _EVENTS.get(name)
        if reader is None:
            return ()
        at, key = lines.moment(event.get("event_time")), text(event.get("event_id"))
        if event.get("event_type") == "BEGIN":
            # The end of a span repeats what its beginning states.
            self._begin(key, at)
            return ()
        fact = reader(event)
        if fact is None or (fact.kind is Kind.NODE_CHECK and self._is_said(fact)):
            return ()
        return [replace(fact, seconds=fact.seconds if fact.seconds is not None else self._since(key, at))]

    def of_plain(self, line: str, at: datetime | None) -> Iterable[Fact]:
        time = _TIME.match(line)
        at = at or (lines.moment(time[1].replace(" ", "T")) if time else None)
        if check := _CHECKED.search(line):
            took = seconds(check[2])
            fact = Fact(Kind.NODE_CHECK, at=at, round=int(check[1]), seconds=took, ok=check[3] == "True")
            return () if self._is_said(fact) else [fact]
        if saved := _SAVE.search(line):
            return self._of_save(saved[1], saved[2], int(saved[3]), at)
        if committed := _COMMITTED.search(line):
            step = int(committed[1])
            return [Fact(Kind.CHECKPOINT, at=at, step=step, tier="disk", ok=True, committed=True, shards=self._shards)]
        if shards := _SHARDS.search(line):
            self._shards = int(shards[1])
        if stragglers := _STRAGGLERS.search(line):
            ranks = re.findall(r"\d{1,6}", stragglers[1])[:20]
            return [Fact(Kind.STRAGGLER, at=at, rank=int(rank)) for rank in ranks]
        return ()

    def _of_save(self, shard: str, action: str, step: int, at: datetime | None) -> Iterable[Fact]:
        tier = "memory" if action.startswith("mem") else "disk"
        rank = int(shard) if shard else None
        key = tier, rank
        if action.endswith("start"):
            self._begin(key, at)
            return ()
        took, is_ok = self._since(key, at), not action.endswith("error")
        shards = self._shards if tier == "disk" else None
        fact = Fact(Kind.CHECKPOINT, at=at, step=step, tier=tier, seconds=took, ok=is_ok, shard=rank, shards=shards)
        return [fact]

    def _is_said(self, fact: Fact) -> bool:
        """Whether the line before has said the same of this check: a plain line and the end of a span do."""
        check = fact.round, fact.seconds
        is_said = self._last_check == check and fact.world_size is None
        self._last_check = None if is_said else check
        return is_said

    def _begin(self, key: object, at: datetime | None) -> None:
        if at is not None:
            self._begun[key] = at
        while len(self._begun) > _MOST_OPEN:
            del self._begun[next(iter(self._begun))]

    def _since(self, key: object, at: datetime | None) -> float | None:
        begun = self._begun.pop(key, None)
        if begun is None or at is None or at < begun:
            return None
        return seconds((at - begun).total_seconds())


def with_true_steps(facts: list[Fact]) -> list[Fact]:
    """Corrects the steps of dlrover's checkpoints in memory: from the second on, a rank names the step of its save before.

    So the step of each is the one that the rank's next line names. The last one goes on at the distance of the two before it.
    """
    places: dict[tuple[str, int | None], list[int]] = defaultdict(list)
    for n, fact in enumerate(facts):
        if fact.kind is Kind.CHECKPOINT and fact.tier == "memory" and fact.rank is None:
            places[fact.pod, fact.shard].append(n)  # those of convoy_runtime have a rank
    for of_rank in places.values():
        steps = [facts[place].step or 0 for place in of_rank]
        for place, step in zip(of_rank, _true(steps), strict=True):
            facts[place] = replace(facts[place], step=step)
    return facts


def _true(steps: list[int]) -> list[int]:
    if len(steps) < 2:
        return steps
    last = steps[-1] + max(steps[-1] - steps[-2], steps[1] - steps[0], 0)
    if len(steps) == 2 and steps[0] == steps[1]:
        last = 2 * steps[0]
    return [*steps[1:], last]


def _rendezvous(event: Mapping[str, Any]) -> Fact:
    """Of an agent with its rank in the world; of the master with the nodes."""
    content = _content(event)
    world = number(content.get("world_size"))
    if world is None and (nodes := text(content.get("node_group"))):
        world = len(re.findall(r"\d+", nodes)) or None
    done = content.get("success")
    return replace(
        _at(event, Kind.RENDEZVOUS),
        round=_first(content, "round", "round_num"),
        rank=number(content.get("rank")),
        world_size=world,
        seconds=seconds(content.get("elapsed_time")),
        ok=done if isinstance(done, bool) else None,
        message="node check" if "check" in text(content.get("rendezvous_type")) else text(content.get("error")),
    )


def _check(event: Mapping[str, Any]) -> Fact:
    content = _content(event)
    fact = replace(_at(event, Kind.NODE_CHECK), round=_first(content, "round", "round_num"))
    if (times := text(content.get("node_check_times"))) or "node_status" in content:
        return _check_of_all(fact, text(content.get("node_status")), times)
    took = seconds(content.get("elapsed_time"))
    status = text(str(content.get("status", ""))).lower()
    failed = status == "false" or "fail" in status or status == "breakdown" or (took or 0.0) >= CHECK_FAILED_S
    return replace(fact, seconds=took, ok=not failed, rank=number(content.get("node_rank")))


def _check_of_all(fact: Fact, status: str, times: str) -> Fact:
    """The master's word on all nodes: ``{0: True, 2: False}`` and ``{0: 10.1, 2: 3600.0}``."""
    failed = re.findall(r"(\d{1,6}): False", status)
    took = [value for text_ in re.findall(r": ([\d.]{1,12})", times) if (value := seconds(text_)) is not None]
    nodes = len(re.findall(r"\d{1,6}: (?:True|False)", status)) or len(took)
    message = f"failed: {', '.join(failed[:20])}" if failed else ""
    return replace(fact, world_size=nodes, seconds=max(took, default=None), ok=not failed, message=message)


def _restart(event: Mapping[str, Any]) -> Fact:
    content = _content(event)
    message = content.get("failures") or content.get("errmsg") or ""
    message = text(message if isinstance(message, str) else str(message)[:500])
    code = _EXIT_CODE.search(message)
    return replace(
        _at(event, Kind.MEMBERSHIP if text(event.get("name")).endswith("membership") else Kind.RESTART),
        restarts=_first(content, "restart_count", "restart_round"),
        remaining=number(content.get("remaining_restarts")),
        exit_code=int(code[1]) if code else None,
        message=message,
    )


def _relaunch(event: Mapping[str, Any]) -> Fact:
    content = _content(event)
    new = text(content.get("relaunch_pod_name")) or text(content.get("new_pod_name"))
    done, most = number(content.get("relaunch_count")), number(content.get("max_relaunch_count"))
    return replace(
        _at(event, Kind.RELAUNCH),
        rank=number(content.get("rank")),
        restarts=done,
        remaining=None if done is None or most is None else max(most - done, 0),
        message=f"replaced by {new}" if new else text(content.get("reason")),
    )


def _exit(event: Mapping[str, Any]) -> Fact | None:
    content = _content(event)
    kind = text(content.get("exc_type"))
    if not kind or kind == "None":
        return None
    name = _CLASS.search(kind)
    words = [name[1] if name else kind, text(content.get("exc_value")) or text(content.get("reason"))]
    return replace(_at(event, Kind.FAILED), message=text(": ".join(word for word in words if word)))


def _end(event: Mapping[str, Any]) -> Fact:
    kind = Kind.SUCCEEDED if text(event.get("name")).endswith("succeeded") else Kind.FAILED
    content = _content(event)
    message = text(content.get("errmsg")) or text(content.get("failures"))
    return replace(_at(event, kind), message="" if message == "{}" else message)


_EVENTS: Mapping[str, Callable[[Mapping[str, Any]], Fact | None]] = {
    "#rendezvous": _rendezvous,
    "#network_check": _check,
    "#process_restart": _restart,
    "#process_restart_membership": _restart,
    "#worker_relaunch": _relaunch,
    "#pod_relaunch": _relaunch,
    "#agent_exit": _exit,
    "#process_fail": _end,
    "#process_succeeded": _end,
}


def _at(event: Mapping[str, Any], kind: Kind) -> Fact:
    content = _content(event)
    at = lines.moment(event.get("event_time"))
    return Fact(kind, at=at, pod=text(content.get("pod_name")), node=text(content.get("node_name")))


def _content(event: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(event.get("content"))


def _first(content: Mapping[str, Any], *names: str) -> int | None:
    return next((value for name in names if (value := number(content.get(name))) is not None), None)


_EXIT_CODE = re.compile(r"exit_?code[^\w-]{1,3}(-?\d{1,3})\b")
_CLASS = re.compile(r"(\w+)'?>?$")
_TIME = re.compile(r"\[?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)")
_SAVE = re.compile(
    r"\[(\d{1,6}|)\]\[(mem_ckpt_start|mem_ckpt_complete|save_shard_start|save_shard_complete|save_shard_error)\]"
    r"\[[^\]]{0,80}?step=(\d{1,12})\b"
)
_COMMITTED = re.compile(r"All agents finish saving checkpoint for step (\d{1,12})\b")
_SHARDS = re.compile(r"number of (?:global shards|ready shards is \d{1,6} !=)(?: is)? (\d{1,6})\b")
_CHECKED = re.compile(r"Network check time of round (\d{1,6}) is ([\d.]{1,12}) and succeed is (True|False)")
_STRAGGLERS = re.compile(r"stragglers are\s?:?\s?\[([\d, ]{1,200})\]", re.IGNORECASE)
