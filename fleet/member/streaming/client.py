"""Lists and watches of one member, read from an event loop. Says what `fleet.member.client` says, in the same words."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from time import perf_counter
from urllib.parse import urlencode

import h11
from h2.exceptions import H2Error

from fleet import metrics
from fleet.member import answers, causes, errors
from fleet.member.client import Access, Object, Params
from fleet.member.reading import PAGE, WatchEvent, next_page, page, watch_event, watch_query
from fleet.member.streaming.answer import Answer, TooLong
from fleet.member.streaming.connections import Connections

LONGEST_EVENT = 2**24
LONGEST_PAGE = 2**27
"""Bytes. Objects of Kubernetes are below 2 MiB each. A member that sends more must not use up the memory of the watcher, which
reads others too."""
LONGEST_LIST_S = 300.0
"""For all pages of a collection: one that never ends must not keep its turn."""
_BROKEN = (OSError, ssl.SSLError, TimeoutError, H2Error, h11.ProtocolError)


class StreamClient:
    """Used from the event loop only. Close it when the credentials change."""

    def __init__(
        self,
        access: Access,
        *,
        timeout_s: float = 10.0,
        private_ok: bool = True,
        cluster: str = "",
        turns: asyncio.Semaphore | None = None,
    ) -> None:
        """``turns`` bounds how many collections are read at once by all clients that have it."""
        self.cluster, self._turns = cluster, turns or asyncio.Semaphore()
        self._base, self._timeout_s = access.server.rstrip("/"), timeout_s
        self._connections = Connections(access, private_ok=private_ok)
        self._headers = {"Accept": "application/json", "User-Agent": "convoy"}
        if access.token:
            self._headers["Authorization"] = f"Bearer {access.token}"

    @asynccontextmanager
    async def collection(self, path: str, params: Params) -> AsyncGenerator[AsyncIterator[Object]]:
        """The pages of a collection, with one of them in memory at a time.

        A member takes its turn (``turns``) once it has begun to answer, and keeps it as long as the context: one that does not
        answer keeps no other from being listed.
        """
        query = {"limit": str(PAGE), **params}
        with self._in_words(path):
            first = await self._answer(path, query, "GET")
        try:
            with self._in_words(path):
                async with self._turns, asyncio.timeout(LONGEST_LIST_S):
                    yield self._pages(first, path, query)
        finally:
            first.close()

    async def _pages(self, first: Answer, path: str, query: Params) -> AsyncIterator[Object]:
        read = page(await self._object(first, path))
        yield read
        while token := next_page(read):
            with self._in_words(path):
                answer = await self._answer(path, {**query, "continue": token}, "GET")
            read = page(await self._object(answer, path))
            yield read

    async def watch(
        self, path: str, *, resource_version: str, params: Params, timeout_s: int, opened: Callable[[], None]
    ) -> AsyncGenerator[WatchEvent]:
        """Changes after ``resource_version`` until the server ends the stream.

        ``opened`` is called once the server has taken the watch: there may be nothing to say for long.
        """
        query = watch_query(params, resource_version, timeout_s)
        with self._in_words(path):
            answer = await self._answer(path, query, "STREAM")
            try:
                opened()
                pending = b""
                async for chunk in answer.chunks(timeout_s + self._timeout_s):
                    *whole, pending = (pending + chunk).split(b"\n")
                    if len(pending) > LONGEST_EVENT:
                        raise TooLong(LONGEST_EVENT)
                    for line in whole:
                        yield watch_event(line)
            finally:
                answer.close()

    def close(self) -> None:
        """Ends every answer under way."""
        self._connections.close()

    async def _object(self, answer: Answer, path: str) -> Object:
        try:
            with self._in_words(path):
                async with asyncio.timeout(self._timeout_s):
                    body = await answer.body(LONGEST_PAGE)
        finally:
            answer.close()
        try:
            parsed = answers.parse(body)
        except ValueError as e:
            raise errors.MemberAway(f"{self._base}: the answer to GET {path} is not JSON") from e
        if not isinstance(parsed, dict):
            raise errors.MemberAway(f"{self._base}: the answer to GET {path} is not an object")
        return parsed

    async def _answer(self, path: str, params: Params, verb: str) -> Answer:
        """An answer whose status is good; of any other the member's own words are raised."""
        began, code = perf_counter(), "unreachable"
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await self._connections.request(f"{path}?{urlencode(params)}", self._headers)
                try:
                    status = await answer.head()
                    code = str(status)
                    if status >= 300:
                        raise errors.from_answer(status, await answer.body(LONGEST_EVENT))
                except BaseException:
                    answer.close()
                    raise
            return answer
        finally:
            if self.cluster:
                metrics.MEMBER_REQUEST_SECONDS.labels(self.cluster, verb, code).observe(perf_counter() - began)

    @contextmanager
    def _in_words(self, path: str) -> Iterator[None]:
        try:
            yield
        except TooLong as e:
            raise errors.MemberAway(f"{self._base}: the answer to GET {path} is {e}") from e
        except _BROKEN as e:
            raise errors.MemberAway(f"{self._base} cannot be reached: {causes.in_words(e)}", raw=causes.raw(e)) from e
