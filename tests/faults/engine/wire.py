"""What the members were asked to write, as it arrived there, and the laws of it: a member is protected from whoever is late.

Rows and objects show harm once it is done, and one guard may stand in for another that is missing. Each request shows whether
the guard was there.
"""

import json
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

JOB, ATTEMPT = "convoy.dev/job-uid", "convoy.dev/attempt"
_COPY = re.compile(r"/apis/(?:kubeflow\.org|batch)/v1/namespaces/[^/]+/(?:pytorchjobs|jobs)(?:/([^/]+))?")
_WRITES = ("POST", "PATCH", "DELETE", "PUT")
Message = dict[str, Any]
App = Callable[..., Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Write:
    """A request for a copy that a member carried out or refused."""

    member: str
    method: str
    name: str
    status: int
    at: float
    uid: str = ""
    attempt: int = 0
    is_checked: bool = True
    """Whether it names the uid and the version that it is for."""


class Recorder:
    """ASGI middleware around a member's application."""

    def __init__(self, app: App, member: str, writes: list[Write], spares: Callable[[Message], bool]) -> None:
        """``spares``: requests of the member's own controllers."""
        self._app, self._member, self._writes, self._spares = app, member, writes, spares

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        path = _COPY.fullmatch(scope.get("path", ""))
        if scope["type"] != "http" or scope["method"] not in _WRITES or path is None or self._spares(scope):
            await self._app(scope, receive, send)
            return
        parts: list[bytes] = []
        status = 0

        async def heard() -> Message:
            message: Message = await receive()
            parts.append(message.get("body", b""))
            return message

        async def answered(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._app(scope, heard, answered)
        finally:
            self._writes.append(_write(self._member, scope["method"], path.group(1) or "", status, b"".join(parts)))


def _write(member: str, method: str, name: str, status: int, body: bytes) -> Write:
    try:
        document = json.loads(body or b"{}")
    except ValueError:
        document = {}
    metadata = document.get("metadata") or {}
    labels = metadata.get("labels") or {}
    if method == "POST":
        uid, attempt = labels.get(JOB, ""), int(labels.get(ATTEMPT, 0))
        return Write(member, method, metadata.get("name", ""), status, time.time(), uid, attempt)
    checked = document.get("preconditions") or {} if method == "DELETE" else metadata
    is_checked = bool(checked.get("uid") and checked.get("resourceVersion"))
    return Write(member, method, name, status, time.time(), is_checked=is_checked)


def unchecked(writes: Sequence[Write]) -> Iterator[str]:
    """What may hit another object than the one that was looked at."""
    for write in writes:
        if not write.is_checked:
            yield f"{write.member} was asked to {write.method} {write.name} whatever its uid and version are"


def late_creations(writes: Sequence[Write], struck: frozenset[str]) -> Iterator[str]:
    """A copy that comes after one of a newer attempt, or a second time: its sender had lost its claim."""
    newest: dict[str, int] = {}
    made: set[tuple[str, int]] = set()
    for write in writes:
        if write.method != "POST" or write.status != 201 or not write.uid:
            continue
        if write.attempt < newest.get(write.uid, 0) and write.member not in struck:
            yield f"attempt {write.attempt} of {write.name} was created on {write.member} after attempt {newest[write.uid]}"
        if (write.uid, write.attempt) in made and write.member not in struck:
            yield f"attempt {write.attempt} of {write.name} was created on {write.member} a second time"
        newest[write.uid] = max(write.attempt, newest.get(write.uid, 0))
        made.add((write.uid, write.attempt))


def sent_twice(writes: Sequence[Write]) -> Iterator[str]:
    """Two workers had the same claim, where nothing was struck that could lose the first one's answer."""
    made: set[tuple[str, int]] = set()
    for write in writes:
        key = (write.uid, write.attempt)
        if write.method == "POST" and write.uid and key in made:
            yield f"attempt {write.attempt} of {write.name} was sent to {write.member} again after it was created"
        if write.method == "POST" and write.status == 201:
            made.add(key)
