"""Judges a world from outside: SQL on its database, objects of its members, answers to its users, logs. Knows no code of ours.

`Judge.look` is called at many moments and checks what must hold at each; `Judge.faults_at_end` what must hold once all is
healed and the jobs have had time. Each returns sentences; none is a good one.
"""

import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.faults.engine import objects, wire
from tests.faults.engine.effects import Effects
from tests.faults.engine.history import History
from tests.faults.engine.members import Contents
from tests.faults.engine.objects import FINISHED, Key, demand, is_live
from tests.faults.engine.preserved import Preserved
from tests.faults.engine.rows import Rows, counting
from tests.faults.engine.users import CAREFUL, DIVIDED, DIVIDED_PODS, FAILS, GPU, IS_DELETED, NIGHT, WAITS, Answer
from tests.faults.engine.wire import Write

ONCE = ("gang", "wide", "batch", "posted", "claimer", "elastic")
"""Jobs that nothing but a fault of their member may move."""
_SETTLED_WORKS = ("Applied", "Gone", "Kept")


@dataclass(frozen=True, slots=True)
class Struck:
    """What was struck, as far as it excuses something."""

    members: frozenset[str] = frozenset()
    restored: frozenset[str] = frozenset()
    database_s: tuple[float, float] = (0.0, 0.0)
    """From when until when the database could not answer."""
    clock: bool = False
    dispatch: bool = False
    """Something that a worker needs to know what became of its requests."""


@dataclass
class Judge:
    capacity: int
    """GPUs of each member."""
    ends: Mapping[str, str]
    faults: dict[str, int] = field(default_factory=dict)
    """What was seen at any moment, and how often."""
    looks: int = 0
    notes: list[tuple[str, str]] = field(default_factory=list)
    """When what was struck, and when a copy was first seen in a state: for a person who reads a failure."""
    struck: Struck = field(default_factory=Struck)
    history: History = field(default_factory=History)
    effects: Effects = field(default_factory=Effects)
    opens_at: float = 0.0
    """When the queue of `NIGHT` has its window; 0: the users have not said so yet."""
    _preserved: Preserved = field(default_factory=Preserved)
    _unended: set[Key] = field(default_factory=set)
    """Copies that were live at the moment before, whose job had ended, and whose work was to go on."""
    _missing: set[Key] = field(default_factory=set)
    """Attempts that were shown as running at the moment before, and were in no member."""
    _states: dict[Key, str] = field(default_factory=dict)
    _terminal: dict[str, str] = field(default_factory=dict)
    _succeeded: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))

    def note(self, text: str) -> None:
        self.notes.append((datetime.now(UTC).isoformat(), text))

    def look(self, members: Mapping[str, Contents], rows: Rows | None) -> None:
        """One moment: the members first, then the rows, which may be newer. No rows: the database does not answer."""
        self.looks += 1
        at = time.time()
        seen = [*self._gangs(members), *self._commitment(members), *self._doubles(members), *self._excess(members)]
        copies = [copy for contents in members.values() for copy in contents.copies]
        seen += [*self._preserved.faults(copies), *self._early(at, copies)]
        self.effects.look(copies, rows)
        self._note_copies(at, members)
        if rows is not None:
            self.history.note_works(at, rows.works)
            self._preserved.note_rows(rows.jobs)
            seen += [*self._fences(members, rows), *self._terminals(rows), *self._left_running(members, rows)]
            seen += self._ghosts(members, rows)
        for fault in seen:
            self.faults[fault] = self.faults.get(fault, 0) + 1

    def _gangs(self, members: Mapping[str, Contents]) -> Iterator[str]:
        places: dict[Key, set[str]] = defaultdict(set)
        for name, contents in members.items():
            for pod in contents.pods:
                if key := objects.key(pod):
                    places[key].add(name)
        for (_, attempt), names in places.items():
            if len(names) > 1:
                yield f"a gang is split: attempt {attempt} has pods on {' and '.join(sorted(names))}"

    def _commitment(self, members: Mapping[str, Contents]) -> Iterator[str]:
        for name, contents in members.items():
            asked = sum(demand(copy, contents.pods) for copy in contents.copies)
            if asked > self.capacity and name not in self.struck.restored:
                copies = ", ".join(f"{objects.name(copy)} {demand(copy, contents.pods)}" for copy in contents.copies)
                yield f"{name} has {self.capacity} GPUs and is asked for more ({copies})"

    def _doubles(self, members: Mapping[str, Contents]) -> Iterator[str]:
        live: dict[str, dict[str, int]] = defaultdict(dict)
        for name, contents in members.items():
            for copy in contents.copies:
                if (key := objects.key(copy)) and is_live(copy):
                    live[objects.name(copy) + " " + key[0]][name] = key[1]
        for job, places in live.items():
            name = job.split()[0]
            # Where the policy says Wait, a member that does not answer is no excuse.
            excuses = self.struck.restored if name in CAREFUL else self.struck.members
            if name not in DIVIDED and len(places) > 1 and not excuses & places.keys():
                where = ", ".join(f"attempt {attempt} on {name}" for name, attempt in sorted(places.items()))
                yield f"two live copies of {name} and no member was struck: {where}"

    def _excess(self, members: Mapping[str, Contents]) -> Iterator[str]:
        """The shares of a divided job ask for no more pods than the job has."""
        pods: Counter[str] = Counter()
        for contents in () if self.struck.members else members.values():
            pods.update({objects.name(copy): objects.pods_asked(copy) for copy in contents.copies if is_live(copy)})
        for name in DIVIDED & pods.keys():
            if pods[name] > DIVIDED_PODS:
                yield f"the shares of {name} ask for {pods[name]} pods, and it has {DIVIDED_PODS}"

    def _early(self, at: float, copies: Iterable[objects.Object]) -> Iterator[str]:
        """Its queue has nothing before its window, whose time is that of a clock that was not struck."""
        is_open = self.opens_at and at >= self.opens_at
        if not (is_open or self.struck.clock) and NIGHT in map(objects.name, copies):
            yield f"{NIGHT} has a copy before the window of its queue has opened"

    def _left_running(self, members: Mapping[str, Contents], rows: Rows) -> Iterator[str]:
        """What ends a job withdraws its copies in the same transaction; seen twice, because the rows may be newer."""
        ended = {job["uid"]: job for job in rows.jobs if job["state"] in FINISHED}
        applied = {(work["job_uid"], work["attempt"]) for work in rows.works if work["state"] == "Applied"}
        live: dict[Key, str] = {}
        for name in members.keys() - self.struck.restored:
            live |= {key: name for copy in members[name].copies if is_live(copy) and (key := objects.key(copy))}
        unended = {key for key in live if key[0] in ended and key in applied}
        for key in unended & self._unended:
            job = ended[key[0]]
            yield f"attempt {key[1]} of {job['name']} runs on in {live[key]}, and the job has {job['state']}"
        self._unended = unended

    def _ghosts(self, members: Mapping[str, Contents], rows: Rows) -> Iterator[str]:
        """What is shown as running has a copy; missed twice, because the rows may be newer."""
        there = {objects.key(copy) for contents in members.values() for copy in contents.copies}
        shown = [
            job for job in rows.jobs if job["state"] == "Running" and not (job["deleting_at"] or job.get("shares"))
        ]
        missing = {(job["uid"], job["attempt"]): job["name"] for job in shown} if not self.struck.restored else {}
        missing = {key: name for key, name in missing.items() if key not in there}
        for key in missing.keys() & self._missing:
            yield f"{missing[key]} is shown as running, and no member has its attempt {key[1]}"
        self._missing = set(missing)

    def _note_copies(self, at: float, members: Mapping[str, Contents]) -> None:
        for name, contents in members.items():
            for copy in contents.copies:
                if key := objects.key(copy):
                    self.history.note_copy(at, copy["metadata"]["uid"], key)
                    self._note_state(key, f"{objects.name(copy)}#{key[1]} on {name}: {objects.state(copy)}")
                    if objects.condition(copy) == "Succeeded":
                        self._succeeded[key[0]].add(key[1])

    def _note_state(self, key: Key, text: str) -> None:
        if self._states.get(key) != text:
            self._states[key] = text
            self.note(text)

    def _fences(self, members: Mapping[str, Contents], rows: Rows) -> Iterator[str]:
        latest = {job["uid"]: job for job in rows.jobs}
        for name, contents in members.items():
            for copy in contents.copies:
                key = objects.key(copy)
                if key and key[0] in latest and key[1] > latest[key[0]]["attempt"]:
                    yield f"{name} has attempt {key[1]} of {objects.name(copy)}, which is at {latest[key[0]]['attempt']}"

    def _terminals(self, rows: Rows) -> Iterator[str]:
        for job in rows.jobs:
            before = self._terminal.get(job["uid"])
            if before and job["state"] != before:
                yield f"{job['name']} was {before} and is {job['state']}"
            if job["state"] in FINISHED:
                self._terminal[job["uid"]] = job["state"]

    def faults_at_end(self, members: Mapping[str, Contents], rows: Rows) -> list[str]:
        checks = (self._outcomes(rows), self._orphans(members, rows), self._books(rows), self._picture(members, rows))
        return [fault for check in (*checks, self._runs(rows), self._sizes(members, rows)) for fault in check]

    def _outcomes(self, rows: Rows) -> Iterator[str]:
        by_name = {job["name"]: job for job in rows.jobs}
        for name, end in self.ends.items():
            job = by_name.get(name)
            state = job["state"] if job else IS_DELETED
            if state != end:
                reason = (job or {}).get("reason") or {}
                yield f"{name} is {state or 'not there'} and has to be {end or 'deleted'}: {reason.get('message')}"
            elif (
                job
                and end in (WAITS, FAILS)
                and not ((job["reason"] or {}).get("code") and job["reason"].get("message"))
            ):
                yield f"{name} is {state} without a reason"

    def _orphans(self, members: Mapping[str, Contents], rows: Rows) -> Iterator[str]:
        attempts = {job["uid"]: counting(job) for job in rows.jobs}
        for name, contents in members.items():
            copies = {objects.key(copy) for copy in contents.copies}
            for copy in contents.copies:
                key = objects.key(copy)
                if key and key[1] not in attempts.get(key[0], ()):
                    current = sorted(attempts.get(key[0], ())) or "no job"
                    yield f"{name} keeps attempt {key[1]} of {objects.name(copy)}, which is at {current}"
            for kind, bodies in (("pod", contents.pods), ("group", contents.groups)):
                left = [body for body in bodies if objects.key(body) and objects.key(body) not in copies]
                yield from (f"{name} keeps the {kind} {objects.name(body)}" for body in left)
            for pod in contents.pods:
                job = next((j for j in rows.jobs if objects.key(pod) and j["uid"] == objects.key(pod)[0]), None)  # type: ignore[index]
                if job and job["state"] in FINISHED and objects.is_active(pod):
                    yield f"{name} runs the pod {objects.name(pod)} of {job['name']}, which has {job['state']}"

    def _sizes(self, members: Mapping[str, Contents], rows: Rows) -> Iterator[str]:
        """The copies of a job have as many pods as its row says, whatever was resized or divided."""
        pods: Counter[str] = Counter()
        for contents in members.values():
            for copy in contents.copies:
                if key := objects.key(copy):
                    pods[key[0]] += objects.pods_asked(copy)
        for job in rows.jobs if not self.struck.members else ():
            wanted = sum(role["replicas"] for role in job.get("roles") or ())
            if job["uid"] in pods and wanted and pods[job["uid"]] != wanted:
                yield f"the copies of {job['name']} have {pods[job['uid']]} pods, and its row says {wanted}"

    def _books(self, rows: Rows) -> Iterator[str]:
        names = {job["uid"]: job["name"] for job in rows.jobs}
        yield from (f"{job['name']} is {job['state']} and charged" for job in rows.jobs if job["charge"])
        for hold in rows.holds:
            yield f"a hold of {names.get(hold['job_uid'], hold['job_uid'])}#{hold['attempt']} is left"
        for work in rows.works:
            if work["state"] not in _SETTLED_WORKS or work["claim"]:
                claim = ", claimed" if work["claim"] else ""
                yield f"a work of {names.get(work['job_uid'])}#{work['attempt']} is {work['state']}{claim}: {work['message']}"

    def _picture(self, members: Mapping[str, Contents], rows: Rows) -> Iterator[str]:
        for name, contents in members.items():
            used: Counter[str] = Counter()
            for pod in contents.pods:
                if objects.is_active(pod) and pod["spec"].get("nodeName"):
                    used[pod["spec"]["nodeName"]] += objects.gpus(pod["spec"])
            for node in (node for node in rows.nodes if node["cluster"] == name):
                shown = int(node["requested"].get(GPU, 0))
                if shown != used[node["name"]]:
                    yield f"node {node['name']} uses {used[node['name']]} GPUs and is shown with {shown}"
            pods = {objects.name(pod): pod["status"].get("phase") for pod in contents.pods if objects.key(pod)}
            shown_pods = {pod["name"]: pod["phase"] for pod in rows.pods if pod["cluster"] == name}
            if pods != shown_pods:
                yield f"pods of {name} are {sorted(pods.items())} and shown as {sorted(shown_pods.items())}"

    def _runs(self, rows: Rows) -> Iterator[str]:
        attempts: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for attempt in rows.attempts:
            attempts[attempt["job_id"]].append(attempt)
        for job in rows.jobs:
            mine = sorted(attempts[job["id"]], key=lambda attempt: int(attempt["number"]))
            mine = [attempt for attempt in mine if not self._is_taken_back((job["uid"], attempt["number"]), attempt)]
            outcomes = [attempt["outcome"] for attempt in mine]
            if job["name"] in DIVIDED:
                yield from self._shares(job, mine)
                continue
            if job["state"] in FINISHED and (not outcomes or not all(a["ended_at"] for a in mine)):
                yield f"{job['name']} has {job['state']} and its attempts are {outcomes}"
            # The copy of an earlier attempt in a struck member may succeed while no later one runs any more.
            is_last = bool(self.struck.members) or outcomes[-1:] == ["Succeeded"]
            if job["state"] == "Succeeded" and not (outcomes.count("Succeeded") == 1 and is_last):
                yield f"{job['name']} has succeeded and its attempts ended so: {outcomes}"
            if self.struck.members:
                continue
            if job["name"] in ONCE and len(outcomes) > 1:
                causes = [f"{a['outcome']}: {a['message']}" for a in mine]
                yield f"{job['name']} was moved although no member was struck: {causes}"
            if len(self._succeeded[job["uid"]]) > 1:
                yield f"{job['name']} ran to its end as attempts {sorted(self._succeeded[job['uid']])}"

    def _shares(self, job: Mapping[str, Any], attempts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        outcomes = {attempt["number"]: attempt["outcome"] for attempt in attempts}
        ended = {number: outcomes.get(number) for number in counting(dict(job))}
        if job["state"] == "Succeeded" and set(ended.values()) != {"Succeeded"}:
            yield f"{job['name']} has succeeded and its shares ended so: {ended}"
        if not self.struck.members and outcomes.keys() - ended.keys():
            yield f"shares of {job['name']} were moved although no member was struck: {outcomes}"

    def _is_taken_back(self, key: Key, attempt: Mapping[str, Any]) -> bool:
        """Whether an earlier attempt had succeeded before this one was sent: no member has ever shown it."""
        return attempt["outcome"] == "Superseded" and key not in self._states


def wrong_answers(answers: Iterable[Answer], struck: Struck) -> list[str]:
    """No 5xx, but 503 while the database is away; and none of a request that says nothing, which would strike at nothing."""
    begins, ends = struck.database_s
    return [
        f"{answer.door}: {answer.request} was answered {answer.status}: {answer.body[:200]}"
        for answer in answers
        if answer.status in _SAYS_NOTHING
        or (answer.status >= 500 and not (answer.status == 503 and begins <= answer.at <= ends + 10.0))
    ]


_SAYS_NOTHING = (400, 401, 403, 405, 415)


def wrong_writes(writes: Sequence[Write], struck: Struck, history: History | None = None) -> list[str]:
    """Requests for copies that a guard should have stopped."""
    found = [*wire.unchecked(writes), *wire.late_creations(writes, struck.members)]
    if history is not None:
        found += [*history.late_writes(writes, struck.members), *history.never_created(writes)]
    if not struck.dispatch:
        found += wire.sent_twice(writes)
    return found


_ERROR = re.compile(
    r"^\s*([A-Za-z_][\w.]*(?:Error|Exception|DoesNotExist|Gone|Lost|Warning|Exhausted))(?::|$)", re.MULTILINE
)
_OF_OTHERS = re.compile(
    r"OperationalError|InterfaceError|ConnectionError|ConnectionRefused|ConnectionReset|ConnectionDoesNotExist|TimeoutError|Timeout"
    r"|BrokenPipe|PoolTimeout|AdminShutdown|CrashShutdown|CannotConnectNow|MemberAway|RedisError|BusyLoading|ResponseError"
    r"|BlockingIOError|RemoteDisconnected|ProtocolError|SchedulingError|InvalidStateError|ReadOnlyError|IncompleteReadError|CancelledError"
    r"|MaxRetryError|NewConnectionError|ClusterGone|DeprecationWarning|UserWarning|ResourceWarning|RuntimeWarning|IdleInTransaction"
)  # fmt: skip
"""Errors that say that a server or a member is away."""
_OF_KOMBU = (
    *("'NoneType' object has no attribute 'hostname'", "'NoneType' object has no attribute 'client'"),
    "IndexError: pop from empty list",
)
"""When the broker goes: a worker with an unacknowledged message ends, and the supervisor starts another; beat tries again."""


def own_errors(logs: Sequence[Path]) -> list[str]:
    """Errors in the logs of the product that no server or member is the cause of."""
    found: Counter[str] = Counter()
    for log in logs:
        text = log.read_text(errors="replace")
        for match in _ERROR.finditer(text):
            line = text[match.start() : text.find("\n", match.end())]
            if not _OF_OTHERS.search(match.group(1)) and not any(words in line for words in _OF_KOMBU):
                found[f"{log.stem}: {text[match.start() : match.start() + 200].strip().splitlines()[0]}"] += 1
    return [f"{line} ({count} times)" for line, count in found.items()]
