"""Requests to a server without a socket in between: parts are seen as they are sent; readers may be slow."""

import asyncio
from typing import Any

from django.utils import timezone

from fleet.services.authorization import access
from tests.support.people import person

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def token_of(name: str) -> str:
    return access.mint(person(name, ("editor", "default")), "t", life=None, now=timezone.now())[1]


class Reader:
    """One request and what its reader has been sent; a slow one takes no more than the head until it is let."""

    def __init__(
        self,
        door: Any,
        token: str,
        path: str,
        query: bytes = b"",
        *,
        is_slow: bool = False,
        address: str = "10.0.0.1",
        method: str = "GET",
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        self.code, self.parts = 0, list[bytes]()
        self.stuck, self.goes_on = asyncio.Event(), asyncio.Event()
        if not is_slow:
            self.goes_on.set()
        self._is_asked, self._left = False, asyncio.Event()
        scope = {
            "type": "http", "http_version": "1.1", "method": method, "path": path, "raw_path": path.encode(),
            "query_string": query,
            "headers": [(b"authorization", f"Bearer {token}".encode()), *headers], "client": (address, 1),
        }  # fmt: skip
        self.task = asyncio.ensure_future(door(scope, self._receive, self._send))

    @property
    def body(self) -> bytes:
        return b"".join(self.parts)

    async def _receive(self) -> dict[str, Any]:
        if self._is_asked:
            await self._left.wait()
            return {"type": "http.disconnect"}
        self._is_asked = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def _send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.code = message["status"]
            return
        self.stuck.set()
        await self.goes_on.wait()
        self.parts.append(message.get("body", b""))

    async def leave(self) -> None:
        self._left.set()
        self.goes_on.set()
        await asyncio.gather(self.task, return_exceptions=True)
