"""What the SDK does, without doing it: each flow yields requests and pauses, is sent the answers, and returns its result.

The synchronous and the asynchronous face run the same flows (`convoy.http`), so that they cannot differ.
"""

import json
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from convoy import types
from convoy.errors import ConvoyError, JobFailed, NotFound, TimedOut
from convoy.views import job_line

T = TypeVar("T")
ENDED = ("Succeeded", "Failed")
DELETED = "Deleted"
STATES = ("Queued", "Placed", "Dispatched", "Running", *ENDED, "Suspended", DELETED)
POLL_S = 1.0
PAGE = 200
Manifests = str | Path | bytes | Mapping[str, Any] | Iterable[Mapping[str, Any]]
_GIVE = "give YAML, the path of a file, or dictionaries"


@dataclass(frozen=True, slots=True)
class Call:
    """A request; it is answered with the JSON of the response."""

    method: str
    path: str
    params: Mapping[str, str] | None = None
    body: object = None
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """It is answered with the seconds since the flow began."""

    seconds: float


Flow = Generator[Call | Pause, Any, T]


def content_of(manifests: Manifests) -> bytes:
    """The body of a request. A string is YAML when it has lines, else the path of a file."""
    if isinstance(manifests, bytes):
        content = manifests
    elif isinstance(manifests, str) and ("\n" in manifests or not manifests.strip()):
        content = manifests.encode()
    elif isinstance(manifests, str | Path):
        content = _file(Path(manifests))
    else:
        documents = [manifests] if isinstance(manifests, Mapping) else list(manifests)
        content = b"\n---\n".join(json.dumps(document).encode() for document in documents if document)
    if not content.strip():
        raise ConvoyError(f"manifests is empty: {_GIVE}")
    return content


def _file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except IsADirectoryError as e:
        raise ConvoyError(f"manifests: {str(path)!r} is a directory; {_GIVE}") from e
    except (OSError, ValueError) as e:
        reason = e.strerror if isinstance(e, OSError) else e
        raise ConvoyError(f"manifests: cannot read {str(path)!r}: {reason}; {_GIVE}") from e


def apply(manifests: Manifests) -> Flow[types.AppliedList]:
    """All of them, or none."""
    answer: types.AppliedList = yield Call("POST", "apply", content=content_of(manifests))
    return answer


def submit(manifests: Manifests) -> Flow[types.JobDetail]:
    """One job, and what it refers to."""
    answer = yield from apply(manifests)
    jobs = []
    for result in answer["results"]:
        try:
            jobs.append((yield from job_of(result["id"])))
        except NotFound:
            continue  # no job, but a policy or an object that the job refers to
    if len(jobs) != 1:
        raise ConvoyError(f"the manifests have {len(jobs)} jobs, not one, and all were applied: use apply() for such")
    return jobs[0]


def job_of(uid: str) -> Flow[types.JobDetail]:
    answer: types.JobDetail = yield Call("GET", f"jobs/{quote(uid, safe='')}/")
    return answer


def find(name: str, namespace: str, kind: str) -> Flow[types.JobDetail]:
    params = {"name": name, "namespace": namespace, "kind": kind}
    jobs: list[types.Job] = yield from pages("jobs/", params)
    if not jobs:
        raise NotFound(f"there is no {kind or 'job'} {name!r} in namespace {namespace}")
    if len(jobs) > 1:
        kinds = ", ".join(sorted(job["kind"] for job in jobs))
        raise ConvoyError(f"{name!r} names several jobs in namespace {namespace}: give kind=, one of {kinds}")
    return (yield from job_of(jobs[0]["id"]))


def pages(path: str, params: Mapping[str, str]) -> Flow[list[Any]]:
    """All items of a collection."""
    query = {key: value for key, value in params.items() if value} | {"page_size": str(PAGE)}
    items: list[Any] = []
    page = 1
    while True:
        answer = yield Call("GET", path, {**query, "page": str(page)})
        items += answer["results"]
        if len(items) >= answer["count"] or not answer["results"]:
            return items
        page += 1


def wait(uid: str, state: str, timeout_s: float | None) -> Flow[types.JobDetail | None]:
    """The job once it is in the state; None once it is gone, where that was waited for."""
    if state not in STATES:
        raise ConvoyError(f"there is no state {state!r}: one of {', '.join(STATES)}")
    while True:
        try:
            job = yield from job_of(uid)
        except NotFound:
            if state == DELETED:
                return None
            raise
        if _has_reached(job["state"], state):
            return job
        about = job_line(job)
        if job["state"] in ENDED and state != DELETED:
            raise JobFailed(about, job["state"])
        passed = yield Pause(POLL_S)
        if timeout_s is not None and passed >= timeout_s:
            raise TimedOut(f"{about}; it was not {state} after {timeout_s:g} s")


def _has_reached(now: str, wanted: str) -> bool:
    """A short job may succeed between two looks at it."""
    return now == wanted or (wanted == "Running" and now == "Succeeded")


def act(uid: str, action: str, body: object = None) -> Flow[types.JobDetail]:
    answer: types.JobDetail = yield Call("POST", f"jobs/{quote(uid, safe='')}/{action}/", body=body or {})
    return answer


def delete(uid: str) -> Flow[types.JobDetail]:
    answer: types.JobDetail = yield Call("DELETE", f"jobs/{quote(uid, safe='')}/")
    return answer


def explain(uid: str) -> Flow[types.Explanation]:
    answer: types.Explanation = yield Call("GET", f"jobs/{quote(uid, safe='')}/explain/")
    return answer


def log_params(
    *, pod: str, role: str, index: int | None, attempt: int | None, tail: int | None, follow: bool
) -> dict[str, str]:
    fields = {"pod": pod, "role": role, "index": index, "attempt": attempt, "tail": tail}
    params = {key: str(value) for key, value in fields.items() if value not in ("", None)}
    return params | ({"follow": "true"} if follow else {})
