"""Judges a world from outside: SQL on its database, objects of its members, answers to its users, logs. Knows no code of ours.

`Judge.look` is called at many moments and checks what must hold at each; `Judge.faults_at_end` what must hold once all is
healed and the jobs have had time. Each returns sentences; none is a good one.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.faults.engine import wire
from tests.faults.engine.members import Contents
from tests.faults.engine.rows import Rows
from tests.faults.engine.users import FAILS, GPU, IS_DELETED, WAITS, Answer
from tests.faults.engine.wire import Write

JOB, ATTEMPT = "convoy.dev/job-uid", "convoy.dev/attempt"
FINISHED = ("Succeeded", "Failed")
ONCE = ("gang", "wide", "batch", "posted", "claimer")
"""Jobs that nothing but a fault of their member may move."""
_SETTLED_WORKS = ("Applied", "Gone", "Kept")
Object = Mapping[str, Any]
Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Struck:
    """What was struck, as far as it excuses something."""

    members: frozenset[str] = frozenset()
    restored: frozenset[str] = frozenset()
    database_s: tuple[float, float] = (0.0, 0.0)
    """From when until when the database could not answer."""
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
    _states: dict[Key, str] = field(default_factory=dict)
    _terminal: dict[str, str] = field(default_factory=dict)
    _succeeded: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))

    def note(self, text: str) -> None:
        self.notes.append((datetime.now(UTC).isoformat(), text))

    def look(self, members: Mapping[str, Contents], rows: Rows | None) -> None:
        """One moment: the members first, then the rows, which may be newer. No rows: the database does not answer."""
        self.looks += 1
        seen = [*self._gangs(members), *self._commitment(members), *self._doubles(members)]
        self._note_ends(members)
        if rows is not None:
            seen += [*self._fences(members, rows), *self._terminals(rows)]
        for fault in seen:
            self.faults[fault] = self.faults.get(fault, 0) + 1

    def _gangs(self, members: Mapping[str, Contents]) -> Iterator[str]:
        places: dict[Key, set[str]] = defaultdict(set)
        for name, contents in members.items():
            for pod in contents.pods:
                if key := _key(pod):
                    places[key].add(name)
        for (_, attempt), names in places.items():
            if len(names) > 1:
                yield f"a gang is split: attempt {attempt} has pods on {' and '.join(sorted(names))}"

    def _commitment(self, members: Mapping[str, Contents]) -> Iterator[str]:
        for name, contents in members.items():
            asked = sum(demand(copy, contents.pods) for copy in contents.copies)
            if asked > self.capacity and name not in self.struck.restored:
                copies = ", ".join(f"{_name(copy)} {demand(copy, contents.pods)}" for copy in contents.copies)
                yield f"{name} has {self.capacity} GPUs and is asked for more ({copies})"

    def _doubles(self, members: Mapping[str, Contents]) -> Iterator[str]:
        live: dict[str, dict[str, int]] = defaultdict(dict)
        for name, contents in members.items():
            for copy in contents.copies:
                if (key := _key(copy)) and is_live(copy):
                    live[_name(copy) + " " + key[0]][name] = key[1]
        for job, places in live.items():
            if len(places) > 1 and not self.struck.members & places.keys():
                where = ", ".join(f"attempt {attempt} on {name}" for name, attempt in sorted(places.items()))
                yield f"two live copies of {job.split()[0]} and no member was struck: {where}"

    def _note_ends(self, members: Mapping[str, Contents]) -> None:
        for name, contents in members.items():
            for copy in contents.copies:
                if key := _key(copy):
                    self._note_state(key, f"{_name(copy)}#{key[1]} on {name}: {_state(copy)}")
                    if _condition(copy) == "Succeeded":
                        self._succeeded[key[0]].add(key[1])

    def _note_state(self, key: Key, text: str) -> None:
        if self._states.get(key) != text:
            self._states[key] = text
            self.note(text)

    def _fences(self, members: Mapping[str, Contents], rows: Rows) -> Iterator[str]:
        latest = {job["uid"]: job for job in rows.jobs}
        for name, contents in members.items():
            for copy in contents.copies:
                key = _key(copy)
                if key and key[0] in latest and key[1] > latest[key[0]]["attempt"]:
                    yield f"{name} has attempt {key[1]} of {_name(copy)}, which is at {latest[key[0]]['attempt']}"

    def _terminals(self, rows: Rows) -> Iterator[str]:
        for job in rows.jobs:
            before = self._terminal.get(job["uid"])
            if before and job["state"] != before:
                yield f"{job['name']} was {before} and is {job['state']}"
            if job["state"] in FINISHED:
                self._terminal[job["uid"]] = job["state"]

    def faults_at_end(self, members: Mapping[str, Contents], rows: Rows) -> list[str]:
        checks = (self._outcomes(rows), self._orphans(members, rows), self._books(rows), self._picture(members, rows))
        return [fault for check in (*checks, self._runs(rows)) for fault in check]

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
        attempts = {job["uid"]: job["attempt"] for job in rows.jobs}
        for name, contents in members.items():
            copies = {_key(copy) for copy in contents.copies}
            for copy in contents.copies:
                key = _key(copy)
                if key and attempts.get(key[0]) != key[1]:
                    yield f"{name} keeps attempt {key[1]} of {_name(copy)}, which is at {attempts.get(key[0], 'no job')}"
            for kind, objects in (("pod", contents.pods), ("group", contents.groups)):
                yield from (f"{name} keeps the {kind} {_name(o)}" for o in objects if _key(o) and _key(o) not in copies)
            for pod in contents.pods:
                job = next((j for j in rows.jobs if _key(pod) and j["uid"] == _key(pod)[0]), None)  # type: ignore[index]
                if job and job["state"] in FINISHED and _is_active(pod):
                    yield f"{name} runs the pod {_name(pod)} of {job['name']}, which has {job['state']}"

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
                if _is_active(pod) and pod["spec"].get("nodeName"):
                    used[pod["spec"]["nodeName"]] += _gpus(pod["spec"])
            for node in (node for node in rows.nodes if node["cluster"] == name):
                shown = int(node["requested"].get(GPU, 0))
                if shown != used[node["name"]]:
                    yield f"node {node['name']} uses {used[node['name']]} GPUs and is shown with {shown}"
            pods = {_name(pod): pod["status"].get("phase") for pod in contents.pods if _key(pod)}
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
            if job["state"] in FINISHED and (not outcomes or not all(a["ended_at"] for a in mine)):
                yield f"{job['name']} has {job['state']} and its attempts are {outcomes}"
            if job["state"] == "Succeeded" and (outcomes.count("Succeeded") != 1 or outcomes[-1] != "Succeeded"):
                yield f"{job['name']} has succeeded and its attempts ended so: {outcomes}"
            if self.struck.members:
                continue
            if job["name"] in ONCE and len(outcomes) > 1:
                causes = [f"{a['outcome']}: {a['message']}" for a in mine]
                yield f"{job['name']} was moved although no member was struck: {causes}"
            if len(self._succeeded[job["uid"]]) > 1:
                yield f"{job['name']} ran to its end as attempts {sorted(self._succeeded[job['uid']])}"

    def _is_taken_back(self, key: Key, attempt: Mapping[str, Any]) -> bool:
        """Whether an earlier attempt had succeeded before this one was sent: no member has ever shown it."""
        return attempt["outcome"] == "Superseded" and key not in self._states


def wrong_answers(answers: Iterable[Answer], struck: Struck) -> list[str]:
    """No 5xx, but 503 while the database is away."""
    begins, ends = struck.database_s
    return [
        f"{answer.door}: {answer.request} was answered {answer.status}: {answer.body[:200]}"
        for answer in answers
        if answer.status >= 500 and not (answer.status == 503 and begins <= answer.at <= ends + 10.0)
    ]


def wrong_writes(writes: Sequence[Write], struck: Struck) -> list[str]:
    """Requests for copies that a guard should have stopped."""
    found = [*wire.unchecked(writes), *wire.late_creations(writes, struck.members)]
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
_OF_KOMBU = ("'NoneType' object has no attribute 'hostname'", "IndexError: pop from empty list")
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


def demand(copy: Object, pods: Sequence[Object]) -> int:
    """GPUs that a copy uses or will use."""
    if _key(copy) is None or _condition(copy) in FINISHED:
        return 0
    mine = [pod for pod in pods if _key(pod) == _key(copy)]
    active = sum(_gpus(pod["spec"]) for pod in mine if _is_active(pod))
    if copy["metadata"].get("deletionTimestamp") or _is_suspended(copy):
        return active
    ended = sum(_gpus(pod["spec"]) for pod in mine if not _is_active(pod))
    return max(_total(copy) - ended, active)


def is_live(copy: Object) -> bool:
    leaving = copy["metadata"].get("deletionTimestamp") or _is_suspended(copy)
    return not leaving and _condition(copy) not in FINISHED


def _total(copy: Object) -> int:
    spec = copy["spec"]
    if "pytorchReplicaSpecs" in spec:
        roles = spec["pytorchReplicaSpecs"].values()
        return sum(int(role.get("replicas", 1)) * _gpus(role["template"]["spec"]) for role in roles)
    return int(spec.get("parallelism", 1)) * _gpus(spec["template"]["spec"])


def _is_suspended(copy: Object) -> bool:
    spec = copy["spec"]
    return bool(spec.get("suspend") or (spec.get("runPolicy") or {}).get("suspend"))


def _condition(copy: Object) -> str:
    true = {c["type"] for c in (copy.get("status") or {}).get("conditions") or [] if c.get("status") == "True"}
    return "Failed" if "Failed" in true else "Succeeded" if true & {"Succeeded", "Complete"} else ""


def _state(copy: Object) -> str:
    leaving = " leaving" if copy["metadata"].get("deletionTimestamp") else " suspended" if _is_suspended(copy) else ""
    return f"{_condition(copy) or 'live'}{leaving}"


def _is_active(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") not in FINISHED


def _gpus(spec: Object) -> int:
    return sum(int((c.get("resources") or {}).get("limits", {}).get(GPU, 0)) for c in spec["containers"])


def _key(body: Object) -> Key | None:
    labels = body["metadata"].get("labels") or {}
    return (labels[JOB], int(labels[ATTEMPT])) if JOB in labels and ATTEMPT in labels else None


def _name(body: Object) -> str:
    return str(body["metadata"]["name"])
