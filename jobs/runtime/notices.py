"""What the supervisor writes on pods and on jobs, and reads again after a restart.

Every record names the uid of the object that it stands on: an annotation that came with a manifest says nothing.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

NOTICE = "convoy.dev/notice"
"""Of a pod: the notice it was given."""
HEARD = "convoy.dev/heard"
"""Of a pod: when it answered."""
SAVED_STEP = "convoy.dev/saved-step"
"""Of a pod: the last step that it has saved, where its runtime reports one."""
NOTICES = "convoy.dev/notices"
"""Of a job: its notices, with their pods."""
MOST_NOTICES, MOST_PODS = 8, 256
"""Of one job; of each notice."""
LONGEST = 2**17
"""Characters, of the 256 KiB that the annotations of an object have together."""


class Scope(StrEnum):
    PODS = "Pods"
    """Only pods of the reclaimed node leave; the job goes on with the others."""
    JOB = "Job"
    """All pods leave, because too few would be left."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Times are seconds since the epoch."""

    id: str
    cause: str
    node: str
    at: float
    deadline: float
    scope: Scope
    restarts: int = 0
    """Restarts of the pod's containers when it was given: one more means that the process has ended."""

    def written(self, uid: str) -> str:
        record = {"uid": uid, "id": self.id, "cause": self.cause, "node": self.node, "scope": self.scope}
        return _json({**record, "at": stamp(self.at), "deadline": stamp(self.deadline), "restarts": self.restarts})


def read_notice(text: object, uid: str) -> Notice | None:
    """The notice of the pod with this uid; None: there is none, or it is not about this pod."""
    record = _parsed(text)
    if not isinstance(record, dict) or record.get("uid") != uid:
        return None
    try:
        return Notice(
            str(record["id"]),
            str(record["cause"]),
            str(record["node"]),
            seconds(record["at"]),
            seconds(record["deadline"]),
            Scope(record["scope"]),
            int(record["restarts"]),
        )
    except (KeyError, TypeError, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class StopRequest:
    """An attempt was asked to stop, as a whole or some of its pods."""

    scope: Scope
    is_complete: bool | None = None
    """Whether it had reached its end all the same, by its own progress; None: that does not say."""


@dataclass(slots=True)
class PodRecord:
    uid: str = ""
    heard: float | None = None
    left: float | None = None
    step: int | None = None
    """The step it has saved."""
    restarts: int | None = None
    """As `Notice.restarts`, until it has left. The process may hear its notice before that is written on the pod."""


@dataclass(slots=True)
class JobRecord:
    """One notice, as the job shows it."""

    notice: Notice
    pods: dict[str, PodRecord] = field(default_factory=dict)
    """By name."""
    stopped: float | None = None
    """When the job was suspended; of scope Job."""


def written(records: Mapping[str, JobRecord], uid: str) -> str:
    """The text of a job's annotation: the latest notices."""
    latest = sorted(records.values(), key=lambda record: record.notice.at)[-MOST_NOTICES:]
    text = _json({"uid": uid, "notices": [_of_record(record) for record in latest]})
    while len(text) > LONGEST and len(latest) > 1:
        del latest[0]
        text = _json({"uid": uid, "notices": [_of_record(record) for record in latest]})
    return text


def _of_record(record: JobRecord) -> dict[str, Any]:
    notice = record.notice
    names = sorted(record.pods)[:MOST_PODS]
    return {
        "id": notice.id,
        "cause": notice.cause,
        "node": notice.node,
        "scope": notice.scope,
        "at": stamp(notice.at),
        "deadline": stamp(notice.deadline),
        **({"stopped": stamp(record.stopped)} if record.stopped is not None else {}),
        **({"more": len(record.pods) - MOST_PODS} if len(record.pods) > MOST_PODS else {}),
        "pods": {name: _of_pod(record.pods[name]) for name in names},
    }


def _of_pod(pod: PodRecord) -> dict[str, Any]:
    times = {"heard": pod.heard, "left": pod.left}
    known: dict[str, Any] = {"uid": pod.uid} | {name: stamp(at) for name, at in times.items() if at is not None}
    counts = {"step": pod.step, "restarts": pod.restarts if pod.left is None else None}
    return known | {name: count for name, count in counts.items() if count is not None}


def read_records(text: object, uid: str) -> dict[str, JobRecord]:
    """The notices of the job with this uid, by id; what cannot be read is left out."""
    document = _parsed(text)
    if not isinstance(document, dict) or document.get("uid") != uid or not isinstance(document.get("notices"), list):
        return {}
    records: dict[str, JobRecord] = {}
    for entry in document["notices"][-MOST_NOTICES:]:
        try:
            record = _record(entry)
        except (AttributeError, KeyError, TypeError, ValueError):
            continue
        records[record.notice.id] = record
    return records


def _record(entry: Mapping[str, Any]) -> JobRecord:
    words = [str(entry[name]) for name in ("id", "cause", "node")]
    if not all(map(_is_word, words)):
        raise ValueError("too long, or not printable")
    about = Notice(
        words[0], words[1], words[2], seconds(entry["at"]), seconds(entry["deadline"]), Scope(entry["scope"])
    )
    pods = {str(name): _pod(pod) for name, pod in list(entry["pods"].items())[:MOST_PODS] if _is_word(name)}
    return JobRecord(about, pods, _moment(entry.get("stopped")))


def _is_word(text: str) -> bool:
    """PostgreSQL stores no NUL."""
    return len(text) <= 253 and text.isprintable()


def _pod(pod: Mapping[str, Any]) -> PodRecord:
    uid = str(pod.get("uid") or "")[:64]
    times = _moment(pod.get("heard")), _moment(pod.get("left"))
    return PodRecord(uid, *times, _count(pod.get("step")), _count(pod.get("restarts")))


def _count(number: object) -> int | None:
    return number if isinstance(number, int) and 0 <= number < 2**53 else None


def _moment(text: object) -> float | None:
    return None if text is None else seconds(text)


def stamp(moment: float) -> str:
    """RFC 3339 with milliseconds."""
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds(text: object) -> float:
    """Raises ValueError for what is no time of this century."""
    try:
        moment = datetime.fromisoformat(str(text))
        timestamp = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except OverflowError as e:
        raise ValueError(str(text)[:60]) from e
    if not 0 <= timestamp < 4_102_444_800:
        raise ValueError(str(text)[:60])
    return timestamp


def _json(document: object) -> str:
    return json.dumps(document, separators=(",", ":"))


def _parsed(text: object) -> Any:
    if not isinstance(text, str) or len(text) > LONGEST:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
