"""One answer that goes on as long as something is written: its bytes as they come, read from an event loop, by no thread.

It has its connection for itself, so that it ends with it. Credentials are those of when it began.
"""

import asyncio
import ssl
from dataclasses import dataclass

import h11
from h2.exceptions import H2Error

from fleet.member import causes
from fleet.member.client import Access
from fleet.member.errors import MemberAway
from fleet.member.streaming.answer import Answer
from fleet.member.streaming.connections import Connections

_BROKEN = (OSError, ssl.SSLError, TimeoutError, H2Error, h11.ProtocolError)


@dataclass(frozen=True, slots=True)
class Line:
    """To a member, with what reading its certificates costs already paid: make it in a thread."""

    server: str
    connections: Connections
    headers: dict[str, str]

    @classmethod
    def to(cls, access: Access, *, private_ok: bool, headers: tuple[tuple[str, str], ...] = ()) -> "Line":
        """``headers`` are those of impersonation."""
        token = {"Authorization": f"Bearer {access.token}"} if access.token else {}
        known = {"Accept": "*/*", "User-Agent": "convoy", **token, **dict(headers)}
        return cls(access.server.rstrip("/"), Connections(access, private_ok=private_ok), known)


class Following:
    """An open answer. Close it in any case, in the event loop."""

    def __init__(self, line: Line, answer: Answer, idle_s: float) -> None:
        self.status, self._line, self._answer = answer.status, line, answer
        self._chunks = answer.chunks(idle_s)

    @classmethod
    async def open(cls, line: Line, target: str, *, timeout_s: float, idle_s: float) -> "Following":
        """Once the member has begun to answer, whatever it says; raises `MemberAway` when it does not.

        It is asked within ``timeout_s``. An API server begins its answer when the kubelet does, with the first byte of a log:
        a program that prints nothing yet is silent as one that has printed before.
        """
        try:
            async with asyncio.timeout(timeout_s):
                answer = await line.connections.request(target, line.headers)
            async with asyncio.timeout(idle_s):
                await answer.head()
        except _BROKEN as e:
            line.connections.close()
            raise MemberAway(f"{line.server} cannot be reached: {causes.in_words(e)}", raw=causes.raw(e)) from e
        except BaseException:
            line.connections.close()
            raise
        return cls(line, answer, idle_s)

    def header(self, name: str) -> str:
        return self._answer.headers.get(name.lower(), "")

    async def read(self) -> bytes:
        """What has arrived, at least a byte; empty at the end. Raises `MemberAway` when it breaks off or is silent too long."""
        try:
            async for chunk in self._chunks:
                if chunk:
                    return chunk
        except _BROKEN as e:
            raise MemberAway(f"the answer broke off: {type(e).__name__}") from e
        return b""

    def close(self) -> None:
        self._answer.close()
        self._line.connections.close()
