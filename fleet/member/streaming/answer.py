"""One answer that arrives in chunks, whatever carries it.

A connection feeds it, one reader consumes it. The connection is asked for more only as the reader consumes, so that a slow
reader holds up its own answer and no other.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable


class TooLong(Exception):  # noqa: N818 - it is the answer that is wrong
    def __init__(self, longest: int) -> None:
        super().__init__(f"longer than {longest} bytes")


class Answer:
    def __init__(self, consumed: Callable[[int], None], ended: Callable[[bool], None]) -> None:
        """``consumed`` is called with the size of each chunk that was read, ``ended`` once with whether all was read."""
        self.status = 0
        self.headers: dict[str, str] = {}
        self._consumed, self._ended = consumed, ended
        self._chunks: deque[tuple[bytes, int]] = deque()
        self._error: BaseException | None = None
        self._is_complete = self._is_closed = False
        self._changed = asyncio.Event()

    # for the connection

    def began(self, status: int, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        self.headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
        self.status = status
        self._changed.set()

    def feed(self, chunk: bytes, size: int) -> None:
        """``size`` is what the chunk counts against the flow-control window; padding counts too."""
        if self._is_closed:
            self._consumed(size)
            return
        self._chunks.append((chunk, size))
        self._changed.set()

    def complete(self) -> None:
        self._is_complete = True
        self._changed.set()

    def fail(self, error: BaseException) -> None:
        if not self._is_complete:
            self._error = error
            self._changed.set()

    # for the reader

    async def head(self) -> int:
        """The status, once it is there."""
        while not self.status:
            await self._wait()
        return self.status

    async def chunks(self, silent_s: float | None = None) -> AsyncIterator[bytes]:
        """What arrives; raises `TimeoutError` when nothing does for ``silent_s``."""
        while self._chunks or not self._is_complete:
            if not self._chunks:
                async with asyncio.timeout(silent_s):
                    await self._wait()
                continue
            chunk, size = self._chunks.popleft()
            self._consumed(size)
            yield chunk

    async def body(self, longest: int) -> bytes:
        """The whole; raises `TooLong` when it is longer than that."""
        whole = bytearray()
        async for chunk in self.chunks():
            whole += chunk
            if len(whole) > longest:
                raise TooLong(longest)
        return bytes(whole)

    def close(self) -> None:
        """Gives up what was not read. Call it in any case."""
        if self._is_closed:
            return
        self._is_closed = True
        for _, size in self._chunks:
            self._consumed(size)
        self._ended(self._is_complete and not self._chunks)
        self._chunks.clear()

    async def _wait(self) -> None:
        if self._error is not None:
            raise self._error
        self._changed.clear()
        await self._changed.wait()
