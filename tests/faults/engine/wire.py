"""What the members were asked to write, as it arrived there, and the laws of it: a member is protected from whoever is late.

Rows and objects show harm once it is done, and one guard may stand in for another that is missing. Each request shows whether
the guard was there.
"""

import json
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.faults.engine.objects import ATTEMPT, JOB
from tests.faults.engine.users import DIVIDED

_COPY = re.compile(r"/apis/(?:kubeflow\.org|batch)/v1/namespaces/[^/]+/(?:pytorchjobs|jobs)(?:/([^/]+))?")
_WRITES = ("POST", "PATCH", "DELETE", "PUT")
SENT_AT = "x-sent-at"
"""The header with the time at which the sender had checked everything and began to send."""
AGAIN = "again"
"""The sender of a request that is delivered a second time."""
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
    """When it was sent; when it arrived, where that is not known."""
    uid: str = ""
    attempt: int = 0
    is_checked: bool = True
    """Whether it names the uid and the version that it is for."""
    object_uid: str = ""
    """Of the object that it names."""
    sender: str = ""
    """The process that sent it."""


@dataclass(frozen=True, slots=True)
class Creation:
    """A request that a member has answered, as it can be delivered again."""

    path: str
    body: bytes
    token: str
    uid: str
    attempt: int


@dataclass(slots=True)
class Line:
    """What has come over the line of one member; it may bring requests for copies a second time."""

    writes: list[Write]
    creations: list[Creation] = field(default_factory=list)
    """Those that were answered, and have not come again."""

    def earlier(self, write: Write) -> Creation | None:
        """Takes a creation of an earlier attempt of the same copy, which arrives once more: the network had kept it."""
        for creation in self.creations if write.method == "POST" else ():
            if creation.uid == write.uid and creation.attempt < write.attempt:
                self.creations.remove(creation)
                return creation
        return None


class Recorder:
    """ASGI middleware around a member's application."""

    def __init__(self, app: App, member: str, line: Line, spares: Callable[[Message], bool]) -> None:
        """``spares``: requests of the member's own controllers."""
        self._app, self._member, self._line, self._spares = app, member, line, spares

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        path = _COPY.fullmatch(scope.get("path", ""))
        if scope["type"] != "http" or scope["method"] not in _WRITES or path is None or self._spares(scope):
            await self._app(scope, receive, send)
            return
        body = await _read(receive)
        headers = {name: value.decode("latin-1") for name, value in scope.get("headers", ())}
        began = float(headers.get(SENT_AT.encode()) or time.time())
        sender = headers.get(b"user-agent", "")
        write = replace(_write(self._member, scope["method"], path.group(1) or "", body), at=began, sender=sender)
        if earlier := self._line.earlier(write):
            again = replace(write, attempt=earlier.attempt, sender=AGAIN)
            self._line.writes.append(await self._passed(again, scope, receive, _nowhere, earlier.body))
        write = await self._passed(write, scope, receive, send, body)
        self._line.writes.append(write)
        if write.method == "POST" and sender != AGAIN:
            token = headers.get(b"authorization", "")
            self._line.creations.append(Creation(scope["path"], body, token, write.uid, write.attempt))

    async def _passed(self, write: Write, scope: Message, receive: Any, send: Any, body: bytes) -> Write:
        """The request with the status of its answer."""
        status = 0

        async def answered(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        await self._app(dict(scope), _whole(body, receive), answered)
        return replace(write, status=status)


class Eager:
    """ASGI middleware that reads a write whole at once: what is carried out late is so although its caller is gone."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["method"] in _WRITES:
            receive = _whole(await _read(receive), receive)
        await self._app(scope, receive, send)


def _whole(body: bytes, receive: Any) -> Callable[[], Awaitable[Message]]:
    is_read = False

    async def again() -> Message:
        nonlocal is_read
        if is_read:
            message: Message = await receive()
            return message
        is_read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def _read(receive: Any) -> bytes:
    parts: list[bytes] = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if message["type"] != "http.request" or not message.get("more_body"):
            return b"".join(parts)


async def _nowhere(_: Message) -> None:
    """Nobody waits for this answer."""


def _write(member: str, method: str, name: str, body: bytes) -> Write:
    try:
        document = json.loads(body or b"{}")
    except ValueError:
        document = {}
    metadata = document.get("metadata") or {}
    labels = metadata.get("labels") or {}
    if method == "POST":
        uid, attempt = labels.get(JOB, ""), int(labels.get(ATTEMPT, 0))
        return Write(member, method, metadata.get("name", ""), 0, 0.0, uid, attempt)
    checked = document.get("preconditions") or {} if method == "DELETE" else metadata
    is_checked = bool(checked.get("uid") and checked.get("resourceVersion"))
    return Write(member, method, name, 0, 0.0, is_checked=is_checked, object_uid=str(checked.get("uid") or ""))


def unchecked(writes: Sequence[Write]) -> Iterator[str]:
    """What may hit another object than the one that was looked at."""
    for write in writes:
        if not write.is_checked:
            yield f"{write.member} was asked to {write.method} {write.name} whatever its uid and version are"


def late_creations(writes: Sequence[Write], struck: frozenset[str]) -> Iterator[str]:
    """A copy that comes after one of a newer attempt, or a second time: its sender had lost its claim.

    The shares of a divided job are attempts beside each other.
    """
    newest: dict[str, int] = {}
    made: set[tuple[str, int]] = set()
    for write in writes:
        if write.method != "POST" or write.status != 201 or not write.uid or write.sender == AGAIN:
            continue
        is_older = write.attempt < newest.get(write.uid, 0) and write.name not in DIVIDED
        if is_older and write.member not in struck:
            yield f"attempt {write.attempt} of {write.name} was created on {write.member} after attempt {newest[write.uid]}"
        if (write.uid, write.attempt) in made and write.member not in struck:
            yield f"attempt {write.attempt} of {write.name} was created on {write.member} a second time"
        newest[write.uid] = max(write.attempt, newest.get(write.uid, 0))
        made.add((write.uid, write.attempt))


def sent_twice(writes: Sequence[Write]) -> Iterator[str]:
    """Two workers had the same claim, where nothing was struck that could lose the first one's answer."""
    made: set[tuple[str, int]] = set()
    for write in (write for write in writes if write.sender != AGAIN):
        key = (write.uid, write.attempt)
        if write.method == "POST" and write.uid and key in made:
            yield f"attempt {write.attempt} of {write.name} was sent to {write.member} again after it was created"
        if write.method == "POST" and write.status == 201:
            made.add(key)
