"""Windows: reservations in time. While one is open its node has another min or max than the rest of the time.

A window is stated by its first and last moment, or by cron with a duration. All here follows from a tree and a time, which is
an argument. Which windows are open is written to the queues (`quotas.services.windows`), so that all readers agree on it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from quotas.core.trees import durations, validation
from quotas.core.trees.cron import Cron, parse_cron
from quotas.core.trees.validation import Fault, Limits

WINDOWS = "windows"
_KEYS = ("from", "to", "cron", "duration", "time-zone", "min", "max", "lead")
_MOST = 20
_TIMES_A_DAY = 24
_LEAD = timedelta(hours=1)
_LONGEST = timedelta(days=31)
HORIZON = timedelta(days=31)
"""How far ahead windows are looked at when a job is about to start."""
_NEXT = 5
_EXAMPLE = '\'[{"cron": "0 8 * * 1-5", "duration": "10h", "min": {"nvidia.com/gpu": 8}}]\''


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of time, once or again and again, with amounts that replace those of the node: only what is named."""

    min: Limits
    max: Limits
    lead: timedelta = _LEAD
    """How long before it begins nothing starts in its place of which it is not known that it ends by then."""
    begin: datetime | None = None
    end: datetime | None = None
    """Of a window that opens once."""
    cron: Cron | None = None
    duration: timedelta = timedelta()
    zone: tzinfo = UTC

    def between(self, since: datetime, until: datetime) -> Iterator[tuple[datetime, datetime]]:
        """First moment and end of each opening that touches a time, in order."""
        if self.cron is not None:
            for begin in self.cron.between(since - self.duration, until, self.zone):
                if begin + self.duration > since:
                    yield begin, begin + self.duration
        elif self.begin is not None and self.end is not None and self.begin < until and self.end > since:
            yield self.begin, self.end


@dataclass(frozen=True, slots=True)
class Opening:
    """A window at one of the times when it is open."""

    path: str
    number: int
    """Which of the node's windows it is, from 0."""
    window: Window
    begin: datetime
    end: datetime

    @property
    def id(self) -> tuple[str, int]:
        return self.path, self.number


class Node(Protocol):
    """As `quotas.core.trees.tree.Node`, which knows this module."""

    @property
    def path(self) -> str: ...

    @property
    def windows(self) -> tuple[Window, ...]: ...


def openings(nodes: Iterable[Node], since: datetime, until: datetime) -> list[Opening]:
    """All openings that touch a time, in the order of the nodes and their windows."""
    return list(each_opening(nodes, since, until))


def each_opening(nodes: Iterable[Node], since: datetime, until: datetime) -> Iterator[Opening]:
    """The same one by one: of a long time there may be more than a caller wants to hold."""
    for node in nodes:
        for number, window in enumerate(node.windows):
            for begin, end in window.between(since, until):
                yield Opening(node.path, number, window, begin, end)


def open_at(nodes: Iterable[Node], now: datetime) -> list[Opening]:
    """The windows that are open, each once; of a window that opens again while it is open, the later opening."""
    latest = {each.id: each for each in openings(nodes, now, now + timedelta(microseconds=1)) if each.begin <= now}
    return list(latest.values())


def ahead(
    nodes: Iterable[Node], now: datetime, horizon: timedelta = HORIZON, *, ends_too: bool = False
) -> list[tuple[datetime, list[Opening]]]:
    """Each combination of open windows that beginning ones lead to (``ends_too``: or ending ones), at the first time that these
    lead to it, soonest first.
    """
    entries = openings(nodes, now, now + horizon)
    order = {each.id: number for number, each in enumerate(entries)}
    open_now = {each.id: each for each in entries if each.begin <= now}
    begins: dict[datetime, list[Opening]] = defaultdict(list)
    for each in entries:
        if each.begin > now:
            begins[each.begin].append(each)
    moments = sorted(begins.keys() | ({each.end for each in entries} if ends_too else set()))
    seen, combinations = {(frozenset(open_now), frozenset[tuple[str, int]]())}, []
    for moment in moments:
        open_now = {key: each for key, each in open_now.items() if each.end > moment}
        beginning = {each.id: each for each in begins.get(moment, ())}
        open_now |= beginning
        if (key := (frozenset(open_now), frozenset(beginning))) not in seen:
            seen.add(key)
            combinations.append((moment, sorted(open_now.values(), key=lambda each: order[each.id])))
    return combinations


def next_openings(node: Node, now: datetime) -> list[Opening]:
    """What is open of a node and what opens next, a few, soonest first."""
    return sorted(openings([node], now, now + HORIZON), key=lambda each: (each.begin, each.number))[:_NEXT]


def amounts(entries: Iterable[Opening]) -> dict[str, tuple[dict[str, int], dict[str, int]]]:
    """By path, the min and max that open windows set; of two that set the same the later in the node's list counts."""
    merged: dict[str, tuple[dict[str, int], dict[str, int]]] = {}
    for each in entries:
        least, most = merged.setdefault(each.path, ({}, {}))
        least |= each.window.min
        most |= each.window.max
    return merged


# parsing


def parse_windows(value: object, name_fault: validation.NameFault, faults: list[Fault]) -> tuple[Window, ...]:
    """The windows of a node; its own alone."""
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(body, dict) for body in value):
        faults.append((WINDOWS, f"must be a JSON list such as {_EXAMPLE}"))
        return ()
    if len(value) > _MOST:
        faults.append((WINDOWS, f"are {len(value)}, and a node has at most {_MOST}: join some by cron"))
        return ()
    read = [_Reader(number, body, name_fault, faults).window() for number, body in enumerate(value)]
    return tuple(window for window in read if window is not None)


@dataclass(slots=True)
class _Reader:
    number: int
    body: Mapping[str, Any]
    name_fault: validation.NameFault
    faults: list[Fault]

    def window(self) -> Window | None:
        before = len(self.faults)
        if unknown := sorted(self.body.keys() - set(_KEYS)):
            self.add(f"{unknown[0]!r} is no key of a window; known are {', '.join(_KEYS)}")
        window = Window(self.limits("min"), self.limits("max"), self.duration("lead", _LEAD, timedelta()))
        if not (self.body.get("min") or self.body.get("max")):
            self.add("must state a min or a max that differs while it is open")
        window = self.recurring(window) if "cron" in self.body else self.once(window)
        return window if len(self.faults) == before else None

    def once(self, window: Window) -> Window:
        for key in ("duration", "time-zone"):
            if key in self.body:
                self.add(f"{key} goes with cron; from and to say when it is open")
        begin, end = self.moment("from"), self.moment("to")
        if begin is not None and end is not None and begin >= end:
            self.add(f"to must be after from: {end:%F %T} UTC is not after {begin:%F %T} UTC")
        return replace(window, begin=begin, end=end)

    def recurring(self, window: Window) -> Window:
        for key in ("from", "to"):
            if key in self.body:
                self.add(f"{key} goes without cron; cron and duration say when it is open")
        cron = parse_cron(self.body["cron"])
        if isinstance(cron, str):
            self.add(f"cron {cron}")
            return window
        if cron.times_a_day > _TIMES_A_DAY:
            self.add(f"cron opens it {cron.times_a_day} times a day, and at most {_TIMES_A_DAY} are possible")
        if "duration" not in self.body:
            self.add("duration is required beside cron, such as 10h")
        least = timedelta(minutes=1)
        return replace(window, cron=cron, duration=self.duration("duration", least, least), zone=self.zone())

    def moment(self, key: str) -> datetime | None:
        value = self.body.get(key)
        try:
            at = datetime.fromisoformat(value) if isinstance(value, str) else None
            if at is not None and at.tzinfo is not None:
                return at.astimezone(UTC)
        except (ValueError, OverflowError):
            pass
        self.add(f"{key} must be a time with its zone, such as 2026-03-01T08:00:00Z, not {value!r}")
        return None

    def duration(self, key: str, default: timedelta, least: timedelta) -> timedelta:
        if (value := self.body.get(key)) is None:
            return default
        duration = durations.parse_duration(value)
        if duration is None or not least <= duration <= _LONGEST:
            bounds = f"from {durations.format_duration(least)} to {_LONGEST.days}d"
            self.add(f"{key} must be {durations.FORMAT}, {bounds}, not {value!r}")
            return default
        return duration

    def zone(self) -> tzinfo:
        name = self.body.get("time-zone", "UTC")
        try:
            return ZoneInfo(name) if isinstance(name, str) and name else UTC
        except (ZoneInfoNotFoundError, ValueError, OSError):
            self.add(f"time-zone must be a name such as Europe/Berlin, not {name!r}")
            return UTC

    def limits(self, key: str) -> Limits:
        body = self.body.get(key)
        if body is None:
            return {}
        if not isinstance(body, dict):
            self.add(f'{key} must be amounts such as {{"nvidia.com/gpu": 8}}, not {body!r}')
            return {}
        limits, wrong = validation.parse_limits(body, self.name_fault)
        for resource, detail in wrong:
            self.add(f"{key} {resource} {detail}")
        return limits

    def add(self, detail: str) -> None:
        self.faults.append((WINDOWS, f"window {self.number + 1}: {detail}"))
