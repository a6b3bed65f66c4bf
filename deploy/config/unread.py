"""Ends connections whose client reads nothing: uvicorn by itself waits for it for ever, whatever protocol it serves."""

import asyncio
from typing import Any

from django.conf import settings


class EndsUnread:
    """Beside a protocol of uvicorn, before it among the bases."""

    transport: asyncio.Transport
    loop: Any
    _unread: asyncio.TimerHandle | None = None
    """When the client must have read something again; none while it keeps up."""

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect_reading(False)
        super().connection_lost(exc)  # type: ignore[misc]  # of the protocol

    def pause_writing(self) -> None:
        super().pause_writing()  # type: ignore[misc]  # as above
        self._expect_reading(True)

    def resume_writing(self) -> None:
        self._expect_reading(False)
        super().resume_writing()  # type: ignore[misc]  # as above

    def _expect_reading(self, is_expected: bool) -> None:
        if self._unread is not None:
            self._unread.cancel()
        self._unread = self.loop.call_later(settings.CONVOY_SEND_S, self.transport.abort) if is_expected else None
